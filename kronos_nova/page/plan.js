/* The plan of an aggregate: what waits to be decided on, and moves on their way. */

import { badge, button, change, clock, el, duration, memory, plural, put, table, scrolled, when, Rows } from './elements.js';
import { meter } from './charts.js';
import { cell, progressOf } from './fleet.js';
import { numbered, route, server, why } from './parts.js';

const ENDED = ['completed', 'failed', 'abandoned'];
const KINDS = {completed: 'good', failed: 'bad', abandoned: 'warn', migrating: 'plain', planned: 'plain'};
const FIRST = 50;
const rank = move => move.state === undefined ? 0 : ENDED.includes(move.state) ? 2 : move.state === 'planned' ? 1 : 0;

export class PlanPart {
  constructor(actions) {
    this.actions = actions;
    this.skipped = new Set();
    this.isWhole = false;
    this.body = el('tbody');
    this.rows = new Rows(this.body, move => `${move.ordinal}`, move => this.row(move));
    this.title = el('h2', {}, 'Plan');
    this.facts = el('div');
    this.buttons = el('div', {class: 'tools'});
    this.more = button('', () => { this.isWhole = true; this.draw(); });
    this.list = el('div', {}, scrolled('Moves', table('Moves', [['#', 'num'], ['Server'], ['From and to'], ['Memory', 'num'], ['State'], ['Why'], ['']], this.body, {class: 'cards'}), {class: 'scroll whole'}), this.more);
    this.node = el('section', {id: 'plan'}, this.title, this.facts, this.buttons, this.list);
  }

  /* plan: the plan in full, or null; open: what the list of aggregates says of it; moves: those of the journal */
  show(plan, open, moves) {
    if (plan?.uuid !== this.plan?.uuid) {
      this.skipped.clear();
      this.isWhole = false;
      this.rows.show([]);
    }
    [this.plan, this.open] = [plan, open];
    this.list.hidden = !plan;
    this.buttons.hidden = !plan;
    if (!plan) {
      put(this.title, 'Plan');
      put(this.facts, 'No plan waits or runs.');
      this.facts.className = 'muted';
      return;
    }
    this.moves = this.merged(plan, moves);
    this.draw();
  }

  /* Before a plan runs its moves are in its report alone; then they are the journal's. */
  merged(plan, moves) {
    if (moves.length) return [...moves].sort((a, b) => rank(a) - rank(b) || a.ordinal - b.ordinal);
    return (plan.report?.moves ?? []).map(move => ({...move, ordinal: move.order}));
  }

  get mayChoose() {
    return this.plan.state === 'proposed' && this.actions.may('plans:approve');
  }

  draw() {
    const {plan, open, moves} = this, state = open?.state ?? plan.state;
    put(this.title, `${plan.purpose === 'drain' ? 'Drain' : 'Plan'}: ${plural(moves.length, 'move')}, ${memory(moves.reduce((sum, move) => sum + move.memory_mb, 0))} to copy`);
    this.drawFacts(plan, open, state);
    this.drawButtons(state);
    this.rows.show(this.isWhole ? moves : moves.slice(0, FIRST));
    this.more.hidden = this.isWhole || moves.length <= FIRST;
    put(this.more, `Show all ${moves.length}`);
  }

  drawFacts(plan, open, state) {
    const [ended, all, lost] = open ? progressOf(open) : [0, 0, 0];
    const facts = [['State', state], ['Made', when(plan.created_at)],
      ['Combined imbalance', plan.combined_before === null ? null : change(plan.combined_before, plan.combined_after)],
      ['Approved by', plan.approved_by], ['Expires', state === 'proposed' ? when(plan.expires_at) : null],
      ['Ended', state === 'proposed' || !all ? null : `${ended} of ${all}${lost ? `, ${lost} of them not well` : ''}`],
      ['Left', open && open.remaining_seconds !== null ? duration(open.remaining_seconds) : null],
      ['Waits for', plan.waits_for], ['Note', plan.reason]].filter(([, value]) => value);
    const now = JSON.stringify(facts);
    if (now === this.factsBefore) return;
    this.factsBefore = now;
    this.facts.className = '';
    this.facts.replaceChildren(el('dl', {class: 'facts'}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...(state === 'proposed' ? [] : [meter(100 * ended / Math.max(1, all), 'Moves that ended')]));
  }

  drawButtons(state) {
    const offered = state === 'proposed' ? ['plans:approve', 'plans:reject'].filter(name => this.actions.may(name)) : [];
    const key = `${this.plan.uuid} ${offered}`;
    if (key !== this.buttonsBefore) {
      this.buttonsBefore = key;
      const {actions} = this;
      this.approve = offered.includes('plans:approve') ? button('', () => actions.approve(this.plan, this.moves, [...this.skipped]), {class: 'main', id: 'approve'}) : null;
      this.buttons.replaceChildren(...[this.approve, offered.includes('plans:reject') ? button('Reject…', () => actions.reject(this.plan), {id: 'reject', class: 'danger'}) : null].filter(Boolean));
    }
    if (this.approve) {
      const chosen = this.moves.length - this.skipped.size;
      put(this.approve, `Approve ${chosen} of ${plural(this.moves.length, 'move')}…`);
      this.approve.disabled = chosen === 0;
    }
  }

  /* Moves of a group help only together, and are chosen together. */
  choice(move) {
    const box = el('input', {type: 'checkbox', checked: !this.skipped.has(move.ordinal), 'aria-label': `Make move ${move.ordinal}`});
    box.addEventListener('change', () => {
      for (const each of this.moves.filter(other => other.ordinal === move.ordinal || move.group && other.group === move.group)) {
        if (box.checked) this.skipped.delete(each.ordinal);
        else this.skipped.add(each.ordinal);
      }
      for (const other of this.body.querySelectorAll('input[data-choice]')) other.checked = !this.skipped.has(Number(other.dataset.choice));
      this.drawButtons(this.plan.state);
    });
    box.dataset.choice = move.ordinal;
    return [box, ' ', numbered(move.ordinal, move.group)];
  }

  row(first) {
    const mayAbort = move => move.uuid && !ENDED.includes(move.state) && this.actions.may('moves:abort');
    const cells = [
      [{class: 'num'}, move => this.mayChoose ? this.choice(move) : numbered(move.ordinal, move.group), () => this.mayChoose],
      [{class: 'full'}, move => server(move.instance_name, move.instance_uuid), move => move.instance_name],
      [{class: 'full'}, move => route(move.source, move.destination), move => move.destination],
      [{class: 'num', 'data-label': 'Memory'}, move => memory(move.memory_mb), move => move.memory_mb],
      [{class: 'full'}, stateOf, move => [move.state, move.progress, move.estimated_end, move.error, move.abort_requested, move.retry_count]],
      [{class: 'why full'}, move => why(move.reason), move => move.reason],
      [{}, move => mayAbort(move) ? button(move.abort_requested ? 'Aborting' : 'Abort…', () => this.actions.abort(move), {disabled: move.abort_requested, 'data-abort': move.uuid, 'aria-label': `Abort move ${move.ordinal}`}) : null,
        move => [move.uuid, mayAbort(move), move.abort_requested]],
    ].map(([attributes, draw, key]) => [cell(attributes, draw), key]);
    return {node: el('tr', {'data-move': first.ordinal}, cells.map(([made]) => made.node)), update: move => cells.forEach(([made, key]) => made.update(move, key(move)))};
  }
}

export function stateOf(move) {
  if (!move.state) return badge('proposed', 'plain');
  const parts = [badge(move.state, KINDS[move.state] ?? 'plain')];
  if (move.abort_requested && !ENDED.includes(move.state)) parts.push(' ', badge('abort asked for', 'warn'));
  if (move.state === 'migrating') {
    if (move.progress !== null) parts.push(el('div', {}, meter(move.progress, 'Memory copied'), ` ${Math.round(move.progress)} %`));
    if (move.estimated_end) parts.push(el('div', {class: 'muted'}, `about ${clock(new Date(move.estimated_end))}`));
  }
  if (move.retry_count) parts.push(el('div', {class: 'muted'}, `${plural(move.retry_count, 'try').replace('trys', 'tries')} before`));
  if (move.error) parts.push(el('div', {class: move.state === 'failed' ? 'bad effect' : 'effect'}, move.error));
  return parts;
}
