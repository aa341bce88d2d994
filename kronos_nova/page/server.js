/* One server: the times and reasons of its moves, the reason why it stays, and its restrictions. */

import { duration, el } from './elements.js';
import { segment } from './client.js';
import { conditions, Filters } from './filters.js';
import { aggregateLink, dated, planLink, routeLinks, serverLink } from './links.js';
import { stateOf } from './moves.js';
import { why } from './parts.js';
import { View } from './view.js';

export class ServerView extends View {
  constructor(page) {
    super(page, 'servers');
    this.title = el('h2');
    this.facts = el('div', {role: 'status'});
    this.moves = el('ol', {class: 'story'});
    this.filters = new Filters('servers', [{name: 'at', label: 'Why was it moved at (UTC)', type: 'datetime-local'}], page.go);
    this.node.append(el('section', {id: 'server'}, this.title, this.facts), el('section', {id: 'story'}, el('h2', {}, 'Its moves, the newest first'), this.filters.node, this.moves));
  }

  learn({name, query}) {
    return this.client.get(`v1/servers/${segment(name)}/explanation?${conditions(query, ['at'])}`);
  }

  draw(found, _status, address) {
    this.filters.show(address);
    const now = JSON.stringify({...found, cooling_seconds: found.cooling_seconds && Math.ceil(found.cooling_seconds / 60)});
    if (now === this.before) return;
    this.before = now;
    this.title.replaceChildren(found.instance_name ?? found.instance_uuid);
    const {planned} = found;
    const facts = [['Uuid', el('span', {class: 'uuid'}, found.instance_uuid)],
      ['Planned', planned && [routeLinks(planned.source, planned.destination), ' in ', planLink(found.planned_in, 'this plan'), el('div', {}, why(planned.reason))]],
      ['Stays', found.stays_because && [`${found.stays_because.replace('_', ' ')}: ${found.stays_means ?? ''} (aggregate `, aggregateLink(found.stays_in), ')']],
      ['Quarantine', found.quarantined_because && [`${found.quarantined_because}, `, found.quarantined_until ? ['until ', dated(found.quarantined_until)] : 'until an operator ends it']],
      ['Left alone', found.cooling_seconds ? `it was moved recently, and is left alone for ${duration(Math.ceil(found.cooling_seconds / 60) * 60)} more` : null],
      ['Movable', found.immovable_because && `${found.movable === 'cold' ? 'by a cold migration only' : 'not at all'}: ${found.immovable_because}`],
      ['Refused', found.refused_because && `${found.refused_because} (${found.refused_hosts.join(', ')})`]].filter(([, value]) => value);
    this.facts.replaceChildren(el('dl', {class: 'story'}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...(facts.length === 1 ? ['It is in no plan and has no restriction. The last evaluation gave no reason why it stays.'] : []));
    this.moves.replaceChildren(...(found.moves.length ? found.moves.map(entry) : [el('li', {class: 'muted'}, 'There is none in the database.')]));
  }
}

/* One move: its time, destination, result, reason, gain of its plan, and best alternative. */
function entry(move) {
  const {next_best: other, plan_imbalance_before: before, plan_imbalance_after: after} = move;
  const seconds = move.requested_at && move.finished_at ? (new Date(move.finished_at) - new Date(move.requested_at)) / 1000 : null;
  return el('li', {'data-move': move.uuid}, el('div', {}, planLink(move.plan_uuid, dated(move.requested_at ?? move.created_at)), ' ', routeLinks(move.source, move.destination), ' ', stateOf(move),
    seconds === null ? null : el('span', {class: 'muted'}, ` took ${duration(seconds)}`)), el('div', {class: 'why'}, why(move.reason)),
  before === null ? null : el('div', {class: 'effect'}, `its plan: combined imbalance ${before.toFixed(3)} → ${after === null ? 'not known, as moves were left out' : after.toFixed(3)}`),
  other ? el('div', {class: 'effect'}, 'next best: ', serverLink(other.instance_name, other.instance_uuid), ` to ${other.destination}, combined imbalance ${other.combined_after.toFixed(3)}`) : null);
}
