/* What is of the whole cloud: drains, quarantined servers, levels that were set, processes. */

import { ago, badge, button, change, el, memory, scrolled, table, when, Rows } from './elements.js';
import { meter } from './charts.js';
import { show, tell } from './dialogs.js';
import { cell } from './fleet.js';
import { route, server, why } from './parts.js';
import { stateOf } from './plan.js';

const PLANS = {done: 'good', proposed: 'plain', rejected: 'warn', expired: 'warn', superseded: 'plain', stopped: 'warn', void: 'warn'};
const DRAINS = {requested: 'plain', draining: 'plain', blocked: 'bad', overdue: 'bad', empty: 'good', releasing: 'plain'};

/* A section with a table of rows; columns: [[title, draw, what it depends on, attributes]] */
class List {
  constructor(id, title, empty, key, columns, ...tools) {
    const body = el('tbody');
    this.empty = el('div', {class: 'muted'}, empty);
    this.rows = new Rows(body, key, () => {
      const cells = columns.map(([, draw, on, attributes]) => [cell(attributes ?? {}, draw), on ?? (each => each)]);
      return {node: el('tr', {}, cells.map(([made]) => made.node)), update: each => cells.forEach(([made, on]) => made.update(each, on(each)))};
    });
    this.table = scrolled(title, table(title, columns.map(([name]) => [name]), body, {class: 'cards'}), {class: 'scroll short'});
    this.node = el('section', {id}, el('div', {class: 'head'}, el('h2', {}, title), tools.filter(Boolean)), this.empty, this.table);
  }

  show(items) {
    this.empty.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
    this.rows.show(items);
  }
}

export const drainsList = actions => new List('drains', 'Drains', 'No host is being drained.', drain => drain.uuid, [
  ['Host', drain => el('b', {class: 'host'}, drain.host), drain => drain.host],
  ['State', drain => [badge(drain.state, DRAINS[drain.state] ?? 'plain'), drain.problem ? el('div', {class: 'bad effect'}, drain.problem) : null, drain.waits_for ? el('div', {class: 'effect'}, `waits for ${drain.waits_for}`) : null]],
  ['Servers left', drain => drain.left === null ? '–' : [`${drain.left} of ${drain.servers} `, meter(100 * (1 - drain.left / Math.max(1, drain.servers)), `Servers that left ${drain.host}`)]],
  ['What stays, and why', drain => Object.keys(drain.blocked).length ? el('details', {class: 'figures'}, el('summary', {}, `${Object.keys(drain.blocked).length} blocked`),
    Object.entries(drain.blocked).map(([uuid, reason]) => el('div', {}, el('span', {class: 'uuid'}, uuid), ` ${reason}`))) : '–', drain => drain.blocked, {class: 'full'}],
  ['Asked for', drain => [`${drain.requested_by}, ${when(drain.requested_at)}`, drain.reason ? el('div', {class: 'effect'}, drain.reason) : null, drain.deadline ? el('div', {class: 'effect'}, `deadline ${when(drain.deadline)}`) : null], null, {class: 'full'}],
  ['', drain => actions.may('drains:release') && drain.state !== 'releasing' ? button('Release…', () => actions.release(drain), {'aria-label': `Release ${drain.host}`}) : null, drain => drain.state],
], actions.may('drains:begin') ? button('Drain hosts…', () => actions.drain(), {id: 'drain'}) : null);

async function showPlan(client, plan) {
  try {
    const moves = await client.all(`v1/moves?plan=${plan.uuid}`, 'moves');
    show(`Plan of ${when(plan.created_at)}`, moves.length ? scrolled('Moves of the plan', table('Moves of the plan', [['#', 'num'], ['Server'], ['From and to'], ['Memory', 'num'], ['State'], ['Why']],
      el('tbody', {}, moves.map(move => el('tr', {}, el('td', {class: 'num'}, `${move.ordinal}`), el('td', {}, server(move.instance_name, move.instance_uuid)), el('td', {}, route(move.source, move.destination)),
        el('td', {class: 'num'}, memory(move.memory_mb)), el('td', {}, stateOf(move)), el('td', {class: 'why'}, why(move.reason))))))) : 'None of its moves was begun.');
  } catch (error) {
    tell(error.message);
  }
}

export const plansList = client => new List('plans', 'The latest plans', 'None was made.', plan => plan.uuid, [
  ['Made', plan => when(plan.created_at)], ['For', plan => plan.purpose], ['State', plan => badge(plan.state, PLANS[plan.state] ?? 'plain')],
  ['Moves', plan => `${plan.move_count}`], ['Combined imbalance', plan => plan.combined_before === null ? '–' : change(plan.combined_before, plan.combined_after)],
  ['Approved by', plan => plan.approved_by ?? '–', null, {class: 'full'}], ['Note', plan => plan.reason ?? plan.waits_for ?? '', null, {class: 'full'}],
  ['', plan => button('Moves…', () => showPlan(client, plan), {'aria-label': `Moves of the plan of ${when(plan.created_at)}`}), plan => plan.uuid]]);

export const quarantineList = actions => new List('quarantine', 'Servers left alone after a failed move', 'None.', server => server.instance_uuid, [
  ['Server', server => [el('span', {class: 'name'}, server.instance_name ?? 'server'), el('div', {class: 'uuid'}, server.instance_uuid)], null, {class: 'full'}],
  ['Since', server => when(server.since)], ['Until', server => server.until ? when(server.until) : 'an operator ends it'], ['Why', server => server.reason, null, {class: 'full'}],
  ['', server => actions.may('quarantine:end') ? button('End it…', () => actions.endQuarantine(server), {'aria-label': `End the quarantine of ${server.instance_name ?? server.instance_uuid}`}) : null]]);

export const switchesList = () => new List('switches', 'Levels and pauses that were set', 'None were.', event => `${event.set_at} ${event.kind} ${event.aggregate}`, [
  ['At', event => when(event.set_at)], ['Aggregate', event => event.aggregate === '*' ? 'all' : event.aggregate],
  ['What', event => `${event.kind} ${event.value || 'taken away'}`], ['By', event => event.set_by], ['Reason', event => event.reason, null, {class: 'full'}]]);

export const workersList = () => new List('workers', 'Processes', 'None was heard of.', worker => `${worker.role} ${worker.name}`, [
  ['Process', worker => el('span', {class: 'host'}, worker.name), worker => worker.name, {class: 'full'}], ['Does', worker => worker.role],
  ['Heard of', worker => [worker.is_alive ? badge('alive', 'good') : badge('silent', 'bad'), ` ${ago(worker.heard_at)}`], worker => [worker.is_alive, ago(worker.heard_at)]]]);
