/* The state of a move in few words, and its reason, which unfolds. */

import { badge, clock, el, plural } from './elements.js';
import { meter } from './charts.js';
import { why } from './parts.js';

export const ENDED = ['completed', 'failed', 'abandoned'];
const KINDS = {completed: 'good', failed: 'bad', abandoned: 'warn', migrating: 'plain', planned: 'plain'};

export function stateOf(move) {
  if (!move.state) return badge('proposed', 'plain');
  const parts = [badge(move.state, KINDS[move.state] ?? 'plain')];
  if (move.abort_requested && !ENDED.includes(move.state)) parts.push(' ', badge('abort asked for', 'warn'));
  if (move.state === 'migrating') {
    if (move.progress !== null) parts.push(' ', meter(move.progress, 'Memory copied'), ` ${Math.round(move.progress)} %`);
    if (move.estimated_end) parts.push(el('span', {class: 'muted'}, ` about ${clock(new Date(move.estimated_end))}`));
  }
  if (move.retry_count) parts.push(el('span', {class: 'muted'}, ` ${plural(move.retry_count, 'try').replace('trys', 'tries')} before`));
  if (move.error) parts.push(el('div', {class: move.state === 'failed' ? 'bad effect' : 'effect'}, move.error));
  return parts;
}

/* The purpose of a move; its effects are shown when it is unfolded. */
export function reasonOf(reason) {
  const [head, ...effects] = why(reason);
  if (!effects.length) return head ?? '';
  return el('details', {class: 'figures'}, el('summary', {}, head), effects);
}
