/* Sections of both a live aggregate and a replayed one: policies, planned moves, and servers that stay. */

import { el, badge, button, figure, memory, plural, table, scrolled } from './elements.js';
import { bar, descent } from './charts.js';

const OUTCOMES = {planned: 'plain', balanced: 'good', cooling: 'plain', draining: 'plain', no_data: 'bad', failed: 'bad', no_move: 'warn'};
const TOLERANCE = 1e-9;

export const above = policy => policy.after !== null && policy.after > policy.threshold + TOLERANCE;
export const isMeasured = policy => policy.before !== null;

/* The outcome in words. A plan that leaves a policy above its threshold is shown as a warning. */
export function outcomeBadge(outcome, policies) {
  if (!outcome) return badge('not evaluated', 'plain');
  const words = outcome.replace('_', ' ');
  return policies.some(above) && ['planned', 'balanced'].includes(outcome) ? badge(`${words}, above threshold`, 'warn') : badge(words, OUTCOMES[outcome] ?? 'plain');
}

/* policies: [{name, weight, threshold, detail, before, after}]; label: a title for views with several tables */
export function policiesPart(policies, combined, label = 'Imbalance by policy') {
  const full = Math.max(0.001, ...policies.flatMap(policy => [policy.before ?? 0, policy.after ?? 0, policy.threshold * 1.2]));
  const changes = policies.some(policy => policy.after !== policy.before);
  const rows = policies.map(policy => el('tr', {'data-policy': policy.name},
    el('th', {scope: 'row'}, policy.name),
    el('td', {class: 'num', 'data-label': 'Weight'}, policy.weight.toFixed(2)), el('td', {class: 'num', 'data-label': 'Threshold'}, figure(policy.threshold)),
    isMeasured(policy)
      ? [el('td', {class: 'num', 'data-label': 'Imbalance'}, figure(policy.before)), changes ? el('td', {class: `num ${above(policy) ? 'bad' : 'good'}`, 'data-label': 'After'}, figure(policy.after)) : null,
        el('td', {class: 'wide full'}, bar(policy.before, changes ? policy.after : null, policy.threshold, full)),
        el('td', {}, above(policy) ? badge('above threshold', 'warn') : badge('within', 'good'))]
      : [el('td', {class: 'num'}, '–'), changes ? el('td', {class: 'num'}, '–') : null, el('td', {class: 'wide full'}, policy.detail), el('td', {}, badge('no data', 'bad'))]));
  if (combined && combined[0] !== null) rows.push(el('tr', {}, el('th', {scope: 'row'}, 'combined'), el('td'), el('td'),
    el('td', {class: 'num', 'data-label': 'Imbalance'}, figure(combined[0])), changes ? el('td', {class: 'num', 'data-label': 'After'}, figure(combined[1])) : null, el('td'), el('td')));
  return scrolled(label, table(label,
    [['Policy'], ['Weight', 'num'], ['Threshold', 'num'], ['Imbalance', 'num'], ...(changes ? [['After', 'num']] : []), ['Fullest host less emptiest'], ['']],
    el('tbody', {}, rows), {class: 'cards'}));
}

/* A reason in parts: the purpose of the move, and below it the effects. Its memory has a column of its own. */
export function why(reason) {
  const said = reason.split('; ').filter(part => !/^\d+ MiB to copy$/.test(part));
  const [first, ...rest] = said;
  if (first === undefined) return [];
  const colon = first.indexOf(': ');
  const head = colon < 0 ? first : first.slice(0, colon);
  const effects = [...(colon < 0 ? [] : [first.slice(colon + 2)]), ...rest];
  return [el('span', {}, head), ...effects.map(text => el('div', {class: 'effect'}, text))];
}

export const server = (name, uuid) => [el('span', {class: 'name'}, name ?? 'server'), el('div', {class: 'uuid'}, uuid)];
export const route = (source, destination) => [el('span', {class: 'host'}, source), el('span', {class: 'arrow', role: 'img', 'aria-label': 'to'}, ' → '), el('span', {class: 'host'}, destination)];

/* The number of a move and of its group. Moves of a group help only together. */
export const numbered = (order, group) => group ? `${order}, group ${group}` : `${order}`;

/* Planned moves: [{order, group, phase, uuid, name, source, destination, memory_mb, after, reason}] */
export function movesPart(moves, before) {
  const total = moves.reduce((sum, move) => sum + move.memory_mb, 0), body = el('tbody', {}, moves.slice(0, FIRST).map(plannedRow));
  const more = moves.length > FIRST ? button(`Show all ${moves.length}`, () => { body.append(...moves.slice(FIRST).map(plannedRow)); more.remove(); }) : null;
  return el('section', {id: 'moves'}, el('h2', {}, `Moves, in this order: ${moves.length.toLocaleString('en')}, ${memory(total)} to copy`),
    before === null || before === undefined ? null : descent([before, ...moves.map(move => move.after)]),
    scrolled('Moves', table('Moves', [['#', 'num'], ['Phase'], ['Server'], ['From and to'], ['Memory', 'num'], ['Combined after', 'num'], ['Why']],
      body), {class: 'scroll whole'}), more);
}

const FIRST = 50;
const plannedRow = move => el('tr', {},
  el('td', {class: 'num'}, numbered(move.order, move.group)), el('td', {}, move.phase), el('td', {}, server(move.name, move.uuid)),
  el('td', {}, route(move.source, move.destination)), el('td', {class: 'num'}, memory(move.memory_mb)),
  el('td', {class: 'num'}, figure(move.after)), el('td', {class: 'why'}, why(move.reason)));

/* stayed: [{reason, means, count, instances}]; instances are [{name, uuid, host}], where they are known */
export function stayedPart(stayed) {
  return el('div', {class: 'stayed'}, stayed.map(skip => {
    const row = [el('b', {class: 'word'}, skip.reason.replace('_', ' ')), el('span', {class: 'num'}, skip.count.toLocaleString('en')),
      el('span', {class: 'muted'}, skip.means)];
    if (!skip.instances) return el('div', {class: 'reason'}, row);
    const list = el('div', {class: 'list'});
    const fill = () => {
      if (list.childNodes.length) return;
      list.append(...skip.instances.map(each => el('div', {}, el('span', {class: 'name'}, each.name), ' ',
        el('span', {class: 'muted'}, `on ${each.host}`), el('div', {class: 'uuid'}, each.uuid))));
      if (skip.count > skip.instances.length) list.append(el('div', {class: 'muted'}, `and ${(skip.count - skip.instances.length).toLocaleString('en')} more`));
    };
    return el('details', {on: {toggle: fill}}, el('summary', {class: 'reason'}, row), list);
  }));
}

export const warningsPart = warnings => warnings.length ? el('section', {id: 'warnings'}, el('h2', {}, 'To know'),
  el('ul', {class: 'plainlist'}, warnings.map(text => el('li', {class: 'warning'}, text)))) : null;

export const hostsOf = count => plural(count, 'host');
