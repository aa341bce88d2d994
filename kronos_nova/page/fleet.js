/* All aggregates, one line each, and notices that an operator should read. */

import { ago, badge, el, figure, plural, put, roughly, scrolled, table, Rows } from './elements.js';
import { bar, meter } from './charts.js';
import { aggregateLink, hostLink } from './links.js';
import { ENDED } from './moves.js';
import { outcomeBadge } from './parts.js';

const SOUND = 90, FAIR = 60;

export const healthKind = health => health === null ? 'muted' : health >= SOUND ? 'good' : health >= FAIR ? '' : 'bad';
export const healthText = health => health === null ? 'not known' : `${Math.round(health)}`;

/* Progress of a plan: [moves that ended, all moves, moves that failed] */
export function progressOf(plan) {
  const count = names => names.reduce((sum, name) => sum + (plan.states[name] ?? 0), 0);
  return [count(ENDED), plan.moves, count(['failed', 'abandoned'])];
}

export function describePlan(plan) {
  if (!plan) return 'no plan';
  if (plan.state === 'proposed') return `${plural(plan.moves, 'move', 'wait')} for approval`;
  const [ended, all] = progressOf(plan);
  const left = plan.remaining_seconds === null ? '' : `, ${roughly(plan.remaining_seconds)} more`;
  return `${plan.purpose === 'drain' ? 'drain' : 'plan'} ${plan.state}: ${ended} of ${plural(all, 'move')}${left}`;
}

/* Cells whose content is replaced only when it changes. */
export function cell(attributes, draw) {
  const node = el('td', attributes);
  let before = null;
  return {node, update(item, key) {
    const now = JSON.stringify(key);
    if (now !== before) node.replaceChildren(...[draw(item)].flat(Infinity).filter(part => part !== null && part !== undefined));
    before = now;
  }};
}

export class Fleet {
  constructor() {
    const body = el('tbody');
    this.rows = new Rows(body, each => each.name, each => this.row(each));
    this.title = el('h2', {}, 'Aggregates');
    this.node = el('section', {id: 'aggregates'}, this.title, scrolled('Aggregates', table('Aggregates',
      [['Aggregate'], ['Health', 'num'], ['Level'], ['Last evaluation'], ['Imbalance and threshold'], ['Hosts', 'num'], ['Plan'], ['Evaluated', 'num']], body, {class: 'cards'}), {class: 'scroll short'}));
  }

  show(aggregates, pauses) {
    const stops = pauses.filter(pause => pause.value === 'stop').map(pause => pause.aggregate);
    this.rows.show(aggregates.map(each => ({...each, isStopped: stops.includes('*') || stops.includes(each.name)})));
  }

  row(first) {
    const cells = [
      [{class: 'num', 'data-label': 'Health'}, each => el('span', {class: `health ${healthKind(each.health)}`}, healthText(each.health)), each => each.health],
      [{'data-label': 'Level'}, each => [each.level, each.paused ? [' ', badge(each.isStopped ? 'stopped' : 'paused', 'warn')] : null], each => [each.level, each.paused, each.isStopped]],
      [{class: 'full'}, each => [outcomeBadge(each.outcome, []), ' ', el('span', {class: 'muted'}, each.reason)], each => [each.outcome, each.reason]],
      [{class: 'full'}, each => each.policies.map(policyLine), each => each.policies],
      [{class: 'num', 'data-label': 'Hosts'}, each => [each.hosts === null ? '–' : each.hosts.toLocaleString('en'), each.hot_hosts ? el('div', {class: 'bad'}, `${each.hot_hosts} hot`) : null], each => [each.hosts, each.hot_hosts]],
      [{class: 'full'}, each => [el('div', {}, describePlan(each.plan)), each.plan && each.plan.state !== 'proposed' ? meter(100 * progressOf(each.plan)[0] / Math.max(1, each.plan.moves), `Moves of ${each.name} that ended`) : null],
        each => [describePlan(each.plan), each.plan && progressOf(each.plan)]],
      [{class: 'num muted', 'data-label': 'Evaluated'}, each => ago(each.evaluated_at), each => ago(each.evaluated_at)],
    ].map(([attributes, draw, key]) => [cell(attributes, draw), key]);
    const node = el('tr', {'data-name': first.name}, el('th', {scope: 'row', class: 'full'}, aggregateLink(first.name)), cells.map(([made]) => made.node));
    return {node, update: each => cells.forEach(([made, key]) => made.update(each, key(each)))};
  }
}

function policyLine(policy) {
  const over = policy.imbalance !== null && policy.imbalance > policy.threshold + 1e-9;
  return el('div', {class: 'policyline'}, el('span', {class: 'muted host'}, policy.name),
    policy.imbalance === null ? badge('no data', 'bad') : el('span', {class: `num ${over ? 'bad' : 'good'}`}, figure(policy.imbalance)),
    el('span', {}, el('span', {class: 'unseen'}, `threshold ${figure(policy.threshold)}`), policy.imbalance === null ? null : bar(policy.imbalance, null, policy.threshold, Math.max(policy.threshold * 2, policy.imbalance, 0.001))));
}

/* Notices that an operator should read, with their remedy. */
export class Problems {
  constructor() {
    const list = el('ul', {class: 'plainlist'});
    this.rows = new Rows(list, each => JSON.stringify(each), each => ({update() {}, node: el('li', {class: `problem ${each.severity}`},
      el('b', {}, each.severity), ` ${each.what} `, el('span', {}, each.remedy))}));
    this.node = el('section', {id: 'problems'}, el('h2', {}, 'To look at'), list);
  }

  show(problems) {
    this.node.hidden = problems.length === 0;
    this.rows.show(problems);
  }
}

/* The maintenance in progress: its hosts in order, each with its state. */
export class Maintenance {
  constructor() {
    this.title = el('h2');
    const list = el('ul', {class: 'plainlist'});
    this.rows = new Rows(list, each => each.host, first => {
      const state = el('span');
      return {node: el('li', {'data-host': first.host}, hostLink(first.host), ' ', state),
        update: each => state.replaceChildren(badge(each.state, {finished: 'good', failed: 'bad', 'left out': 'warn'}[each.state] ?? 'plain'))};
    });
    this.node = el('section', {id: 'maintenance'}, this.title, list);
  }

  show(found) {
    this.node.hidden = !found;
    if (found) put(this.title, `Maintenance of ${plural(found.hosts.length, 'host')}: ${found.state}, asked for by ${found.requested_by}`);
    this.rows.show(found?.hosts ?? []);
  }
}

export const severityBadge = severity => severity === null ? badge('all is well', 'good') : badge(severity, {critical: 'bad', warning: 'warn'}[severity] ?? 'plain');
