/* The plan of an aggregate: moves that wait for approval and moves in progress, in folds. */

import { button, change, el, memory, plural, put, roughly, scrolled, table, Rows } from './elements.js';
import { meter } from './charts.js';
import { cell, progressOf } from './fleet.js';
import { dated, planLink, routeLinks, serverLink } from './links.js';
import { ENDED, reasonOf, stateOf } from './moves.js';
import { numbered } from './parts.js';
import { Picture } from './picture.js';

/* Moves of a plan up to which nothing is folded. */
const SHORT = 12;
const FIRST = 50;
const COLUMNS = [['#', 'num'], ['Server'], ['From and to'], ['Memory', 'num'], ['State'], ['Why'], ['']];

/* The fold of a move: [key, place among folds, title]. Before a plan starts, moves are folded by group, because moves
   of a group help only together; after that, by state. */
function foldOf(move) {
  if (move.state === undefined) return move.group ? [`group ${move.group}`, move.group, `Group ${move.group}, which helps only as a whole`] : ['alone', Infinity, 'Moves that help without others'];
  if (ENDED.includes(move.state)) return ['ended', 2, 'Ended'];
  return move.state === 'planned' ? ['waiting', 1, 'Waiting'] : ['running', 0, 'In progress'];
}

export function folded(moves) {
  const folds = new Map();
  for (const move of [...moves].sort((a, b) => a.ordinal - b.ordinal)) {
    const [key, place, title] = foldOf(move);
    if (!folds.has(key)) folds.set(key, {key, place, title, moves: []});
    folds.get(key).moves.push(move);
  }
  return [...folds.values()].sort((a, b) => a.place - b.place);
}

const countStates = moves => moves.reduce((counts, {state}) => ({...counts, [state]: (counts[state] ?? 0) + 1}), {});

/* One fold: a line with the sums of its moves, and while it is open a row for each move. */
class Fold {
  constructor(key, part) {
    this.part = part;
    this.isOpen = null;
    this.isWhole = false;
    this.toggle = button('', () => { this.isOpen = !this.isOpen; this.draw(); }, {class: 'link', 'aria-expanded': 'false'});
    this.box = el('input', {type: 'checkbox', on: {change: () => part.choose(this.fold.moves, this.box.checked)}});
    this.head = el('tr', {class: 'fold'}, el('th', {colspan: COLUMNS.length, scope: 'rowgroup'}, this.toggle));
    this.more = button('', () => { this.isWhole = true; this.draw(); });
    this.rest = el('tr', {}, el('td', {colspan: COLUMNS.length}, this.more));
    this.body = el('tbody', {'data-fold': key}, this.head);
    this.rows = new Rows(this.body, move => `${move.ordinal}`, move => part.row(move), this.head);
    this.node = this.body;
  }

  update(fold) {
    this.fold = fold;
    this.isOpen ??= fold.key === 'running' || this.part.moves.length <= SHORT;
    this.draw();
  }

  draw() {
    const {moves, title} = this.fold, isLong = !this.isWhole && moves.length > FIRST;
    put(this.toggle, `${this.isOpen ? '▾' : '▸'} ${title}: ${plural(moves.length, 'move')}, ${memory(moves.reduce((sum, move) => sum + move.memory_mb, 0))}`);
    this.toggle.setAttribute('aria-expanded', String(this.isOpen));
    this.rows.show(!this.isOpen ? [] : isLong ? moves.slice(0, FIRST) : moves);
    if (!this.part.mayChoose) this.box.remove();
    else if (!this.box.parentNode) this.toggle.before(this.box, ' ');
    this.box.setAttribute('aria-label', `Make all moves of: ${title}`);
    put(this.more, `Show all ${moves.length}`);
    if (this.isOpen && isLong) this.body.append(this.rest);
    else this.rest.remove();
    this.mark();
  }

  mark() {
    const chosen = this.fold.moves.filter(move => !this.part.skipped.has(move.ordinal)).length;
    this.box.checked = chosen > 0;
    this.box.indeterminate = chosen > 0 && chosen < this.fold.moves.length;
  }
}

export class PlanPart {
  constructor(actions) {
    this.actions = actions;
    this.skipped = new Set();
    this.folds = new Map();
    this.title = el('h2', {}, 'Plan');
    this.facts = el('div');
    this.buttons = el('div', {class: 'tools'});
    this.table = table('Moves', COLUMNS, null, {class: 'cards moves'});
    this.rows = new Rows(this.table, fold => fold.key, fold => this.fold(fold), this.table.lastChild);
    this.picture = new Picture();
    this.list = el('div', {}, this.picture.node, scrolled('Moves', this.table, {class: 'scroll whole'}));
    this.node = el('section', {id: 'plan'}, this.title, this.facts, this.buttons, this.list);
  }

  fold({key}) {
    const made = new Fold(key, this);
    this.folds.set(key, made);
    return made;
  }

  /* plan: the plan in full, or null; open: the plan in the list of aggregates; moves: those of the journal;
     hosts: {name: {scores, scores_after}} of the evaluation that made the plan, where it is the last one */
  show(plan, open, moves, hosts = null) {
    if (plan?.uuid !== this.plan?.uuid) {
      this.skipped.clear();
      this.rows.show([]);
      this.folds.clear();
    }
    [this.plan, this.open] = [plan, open];
    this.list.hidden = !plan;
    this.buttons.hidden = !plan;
    if (!plan) {
      put(this.title, 'Plan');
      put(this.facts, 'No plan waits or runs.');
      this.facts.className = 'muted';
      this.factsBefore = null;
      return;
    }
    // Before a plan runs its moves are only in its report; after that the journal has them.
    this.moves = moves.length ? moves : (plan.report?.moves ?? []).map(move => ({...move, ordinal: move.order}));
    this.picture.show(plan, this.moves, hosts);
    this.draw();
  }

  get mayChoose() {
    return (this.open?.state ?? this.plan.state) === 'proposed' && this.actions.may('plans:approve');
  }

  draw() {
    const {plan, moves} = this, state = this.open?.state ?? plan.state;
    put(this.title, `${plan.purpose === 'drain' ? 'Drain' : 'Plan'}: ${plural(moves.length, 'move')}, ${memory(moves.reduce((sum, move) => sum + move.memory_mb, 0))} to copy`);
    this.drawFacts(plan, state);
    this.drawButtons(state);
    const folds = folded(moves), keys = new Set(folds.map(fold => fold.key));
    for (const key of this.folds.keys()) if (!keys.has(key)) this.folds.delete(key);
    this.rows.show(folds);
    this.table.parentNode.hidden = !moves.length;
  }

  drawFacts(plan, state) {
    const {open, moves} = this;
    const [ended, all, lost] = progressOf(open ?? {moves: moves.length, states: countStates(moves)});
    const facts = [['State', state], ['Made', plan.created_at, planLink(plan.uuid, dated(plan.created_at))],
      ['Combined imbalance', plan.combined_before === null ? null : change(plan.combined_before, plan.combined_after)],
      ['Would end at, by the last evaluation', plan.combined_now === null || state !== 'proposed' ? null : plan.combined_now.toFixed(3)],
      ['Approved by', plan.approved_by], ['Expires', state === 'proposed' ? plan.expires_at : null, dated(plan.expires_at)],
      ['Ended', state === 'proposed' || !all ? null : `${ended} of ${all}${lost ? `, ${lost} of them not well` : ''}`],
      ['Expected to end', open && open.remaining_seconds !== null ? `in ${roughly(open.remaining_seconds)}, by how long past moves took` : null],
      ['Waits for', plan.waits_for], ['Note', plan.reason], ['Moves', moves.length ? null : 'its report was dropped, see [kronos_database] reports_retention_days']].filter(([, value]) => value);
    const now = JSON.stringify(facts.map(([name, value]) => [name, value]));
    if (now === this.factsBefore) return;
    this.factsBefore = now;
    this.facts.className = '';
    this.facts.replaceChildren(el('dl', {class: 'facts'}, facts.map(([name, value, drawn]) => el('div', {}, el('dt', {}, name), el('dd', {}, drawn ?? value)))),
      ...(state === 'proposed' ? [] : [meter(100 * ended / Math.max(1, all), 'Moves that ended')]));
  }

  drawButtons(state) {
    const offered = ({proposed: ['plans:approve', 'plans:reject'], approved: ['plans:reject']}[state] ?? []).filter(name => this.actions.may(name));
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

  /* Moves of a group help only together, so that they are chosen together. */
  choose(moves, isChosen) {
    const groups = new Set(moves.map(move => move.group).filter(Boolean)), orders = new Set(moves.map(move => move.ordinal));
    for (const each of this.moves.filter(move => orders.has(move.ordinal) || groups.has(move.group))) {
      if (isChosen) this.skipped.delete(each.ordinal);
      else this.skipped.add(each.ordinal);
    }
    for (const box of this.table.querySelectorAll('input[data-choice]')) box.checked = !this.skipped.has(Number(box.dataset.choice));
    for (const fold of this.folds.values()) fold.mark();
    this.drawButtons('proposed');
  }

  choice(move) {
    const box = el('input', {type: 'checkbox', 'data-choice': move.ordinal, checked: !this.skipped.has(move.ordinal), 'aria-label': `Make move ${move.ordinal}`,
      on: {change: () => this.choose([move], box.checked)}});
    return [box, ' ', numbered(move.ordinal, move.group)];
  }

  row(first) {
    const mayAbort = move => move.uuid && !ENDED.includes(move.state) && this.actions.may('moves:abort');
    const cells = [
      [{class: 'num'}, move => this.mayChoose ? this.choice(move) : numbered(move.ordinal, move.group), () => this.mayChoose],
      [{}, move => serverLink(move.instance_name, move.instance_uuid), move => move.instance_name],
      [{class: 'full'}, move => routeLinks(move.source, move.destination), move => move.destination],
      [{class: 'num', 'data-label': 'Memory'}, move => memory(move.memory_mb), move => move.memory_mb],
      [{}, stateOf, move => [move.state, move.progress, move.estimated_end, move.error, move.abort_requested, move.retry_count]],
      [{class: 'why full'}, move => reasonOf(move.reason), move => move.reason],
      [{}, move => mayAbort(move) ? button(move.abort_requested ? 'Aborting' : 'Abort…', () => this.actions.abort(move), {disabled: move.abort_requested, 'data-abort': move.uuid, 'aria-label': `Abort move ${move.ordinal}`}) : null,
        move => [move.uuid, mayAbort(move), move.abort_requested]],
    ].map(([attributes, draw, key]) => [cell(attributes, draw), key]);
    return {node: el('tr', {'data-move': first.ordinal}, cells.map(([made]) => made.node)), update: move => cells.forEach(([made, key]) => made.update(move, key(move)))};
  }
}
