/* Tables of the control database: drains, quarantined servers, plans, moves, changes of levels, processes. */

import { ago, badge, button, change, duration, el, memory, put, scrolled, table, when, Rows } from './elements.js';
import { meter } from './charts.js';
import { cell } from './fleet.js';
import { aggregateLink, dated, hostLink, planLink, routeLinks, serverLink } from './links.js';
import { reasonOf, stateOf } from './moves.js';

const PLANS = {done: 'good', proposed: 'plain', rejected: 'warn', expired: 'warn', superseded: 'plain', stopped: 'warn', void: 'warn'};
const DRAINS = {requested: 'plain', draining: 'plain', blocked: 'bad', overdue: 'bad', empty: 'good', releasing: 'plain'};

/* A section with a table; columns: [[title, draw, values that it depends on, attributes]] */
export class List {
  constructor(id, title, empty, key, columns, ...tools) {
    const body = el('tbody');
    this.title = el('h2', {}, title);
    this.empty = el('div', {class: 'muted'}, empty);
    this.rows = new Rows(body, key, () => {
      const cells = columns.map(([name, draw, on, attributes]) => [cell({'data-label': name || null, ...attributes}, draw), on ?? (each => each)]);
      return {node: el('tr', {}, cells.map(([made]) => made.node)), update: each => cells.forEach(([made, on]) => made.update(each, on(each)))};
    });
    this.table = scrolled(title, table(title, columns.map(([name, , , attributes]) => [name, attributes?.class?.includes('num') ? 'num' : null]), body, {class: 'cards'}), {class: 'scroll short'});
    this.node = el('section', {id}, el('div', {class: 'head'}, this.title, tools.filter(Boolean)), this.empty, this.table);
  }

  show(items) {
    this.empty.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
    this.rows.show(items);
  }
}

/* A list that is as long as the window permits, and says when more was found than is shown. */
class LongList extends List {
  constructor(...given) {
    super(...given);
    this.table.className = 'scroll whole';
    this.rest = el('div', {class: 'muted'});
    this.node.append(this.rest);
  }

  show(items, hasMore = false) {
    super.show(items);
    put(this.rest, hasMore ? `The newest ${items.length} are shown; a shorter time or more conditions show others.` : '');
  }
}

export const drainsList = actions => new List('drains', 'Drains', 'No host is being drained.', drain => drain.uuid, [
  ['Host', drain => hostLink(drain.host), drain => drain.host, {class: 'full', 'data-label': null}],
  ['State', drain => [badge(drain.state, DRAINS[drain.state] ?? 'plain'), drain.problem ? el('div', {class: 'bad effect'}, drain.problem) : null, drain.waits_for ? el('div', {class: 'effect'}, `waits for ${drain.waits_for}`) : null]],
  ['Servers left', drain => drain.left === null ? '–' : [`${drain.left} of ${drain.servers} `, meter(100 * (1 - drain.left / Math.max(1, drain.servers)), `Servers that left ${drain.host}`)]],
  ['Servers that stay, and why', drain => Object.keys(drain.blocked).length ? el('details', {class: 'figures'}, el('summary', {}, `${Object.keys(drain.blocked).length} blocked`),
    Object.entries(drain.blocked).map(([uuid, reason]) => el('div', {}, serverLink(null, uuid), ` ${reason}`))) : '–', drain => drain.blocked, {class: 'full'}],
  ['Asked for', drain => [`${drain.requested_by}, `, dated(drain.requested_at), drain.reason ? el('div', {class: 'effect'}, drain.reason) : null, drain.deadline ? el('div', {class: 'effect'}, 'deadline ', dated(drain.deadline)) : null], null, {class: 'full'}],
  ['', drain => actions.may('drains:release') && drain.state !== 'releasing' ? button('Release…', () => actions.release(drain), {'aria-label': `Release ${drain.host}`}) : null, drain => drain.state],
], actions.may('drains:begin') ? button('Drain hosts…', () => actions.drain(), {id: 'drain'}) : null);

export const plansList = () => new LongList('plans', 'Plans', 'None was made.', plan => plan.uuid, [
  ['Made', plan => planLink(plan.uuid, dated(plan.created_at)), plan => plan.uuid, {class: 'full', 'data-label': null}],
  ['Aggregate', plan => aggregateLink(plan.aggregate)], ['For', plan => plan.purpose], ['State', plan => badge(plan.state, PLANS[plan.state] ?? 'plain')],
  ['Moves', plan => `${plan.move_count}`], ['Imbalance', plan => plan.combined_before === null ? '–' : change(plan.combined_before, plan.combined_after)],
  ['Approved by', plan => plan.approved_by ?? '–'], ['Note', plan => plan.reason ?? plan.waits_for ?? '', null, {class: 'full'}]]);

const took = move => move.requested_at && move.finished_at ? duration((new Date(move.finished_at) - new Date(move.requested_at)) / 1000) : '–';

export const movesList = (title, empty) => new LongList('moves', title, empty, move => move.uuid, [
  ['When', move => planLink(move.plan_uuid, dated(move.requested_at ?? move.created_at)), move => move.requested_at, {class: 'full', 'data-label': null}],
  ['Server', move => serverLink(move.instance_name, move.instance_uuid), move => move.instance_name, {class: 'full'}],
  ['From and to', move => routeLinks(move.source, move.destination), move => move.destination, {class: 'full'}],
  ['Memory', move => memory(move.memory_mb), move => move.memory_mb, {class: 'num'}], ['Took', took, took, {class: 'num'}],
  ['State', stateOf], ['Why', move => reasonOf(move.reason), move => move.reason, {class: 'why full'}]]);

export const quarantineList = actions => new List('quarantine', 'Servers left alone after a failed move', 'None.', server => server.instance_uuid, [
  ['Server', server => serverLink(server.instance_name, server.instance_uuid), null, {class: 'full', 'data-label': null}],
  ['Since', server => dated(server.since)], ['Until', server => server.until ? dated(server.until) : 'an operator ends it'], ['Why', server => server.reason, null, {class: 'full'}],
  ['', server => actions.may('quarantine:end') ? button('End it…', () => actions.endQuarantine(server), {'aria-label': `End the quarantine of ${server.instance_name ?? server.instance_uuid}`}) : null]]);

export const switchesList = () => new List('switches', 'Changes of levels and pauses', 'There are none.', event => `${event.set_at} ${event.kind} ${event.aggregate}`, [
  ['At', event => dated(event.set_at)], ['Aggregate', event => event.aggregate === '*' ? 'all' : event.aggregate],
  ['What', event => `${event.kind}${event.value === event.kind ? '' : ` ${event.value || 'ended'}`}`], ['By', event => event.set_by], ['Reason', event => event.reason, null, {class: 'full'}]]);

export const workersList = () => new List('workers', 'Processes', 'No process has reported itself.', worker => `${worker.role} ${worker.name}`, [
  ['Process', worker => el('span', {class: 'host'}, worker.name), worker => worker.name, {class: 'full', 'data-label': null}], ['Does', worker => worker.role],
  ['Heard of', worker => [worker.is_alive ? badge('alive', 'good') : badge('silent', 'bad'), ` ${ago(worker.heard_at)}`], worker => [worker.is_alive, ago(worker.heard_at)]]]);

const ROOMS = {proposed: 'plain', requested: 'plain', making: 'plain', held: 'good', failed: 'bad', expired: 'warn'};

export const roomsList = () => new List('rooms', 'Room that is kept', 'None is; "kronos-manage room make" makes room.', room => room.uuid, [
  ['For', room => `${room.count} of ${room.flavor}`, null, {class: 'full', 'data-label': null}],
  ['State', room => [badge(room.state, ROOMS[room.state] ?? 'plain'), room.problem ? el('div', {class: 'effect'}, room.problem) : null], room => [room.state, room.problem]],
  ['Used', room => `${Object.keys(room.used).length}`, room => room.used, {class: 'num'}], ['Aggregate', room => aggregateLink(room.aggregate)],
  ['Hosts', room => Object.keys(room.hosts).map(name => el('div', {}, hostLink(name))), room => room.hosts],
  ['Until', room => dated(room.expires_at), room => room.expires_at],
  ['Asked for', room => [`${room.requested_by}, `, dated(room.requested_at), room.reason ? el('div', {class: 'effect'}, room.reason) : null], null, {class: 'full'}]]);

export const serversList = () => new List('server-names', 'Servers', 'No server has such a name.', server => server.uuid, [
  ['Server', server => serverLink(server.name, server.uuid), null, {class: 'full', 'data-label': null}],
  ['Uuid', server => el('span', {class: 'uuid'}, server.uuid)], ['Name read', server => when(server.seen_at)]]);
