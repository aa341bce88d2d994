/* One host: its state, load, drain and servers, and the servers that came and left. */

import { badge, button, el, scrolled, table } from './elements.js';
import { segment } from './client.js';
import { conditions, Filters, RANGE } from './filters.js';
import { aggregateLink, dated, serverLink } from './links.js';
import { drainsList, movesList } from './lists.js';
import { scoreParts, stateBadge } from './machines.js';
import { View } from './view.js';

const MOST = 100;

export class HostView extends View {
  constructor(page) {
    super(page, 'hosts');
    this.title = el('h2');
    this.facts = el('div');
    this.servers = el('div', {role: 'status'});
    this.buttons = el('span', {class: 'tools'});
    this.drains = drainsList(page.actions);
    this.filters = new Filters('hosts', RANGE, page.go);
    this.moves = movesList('Servers that came and went', 'No server was moved to or from this host in that time.');
    this.moves.node.insertBefore(this.filters.node, this.moves.empty);
    this.node.append(el('section', {id: 'host'}, el('div', {class: 'head'}, this.title, this.buttons), this.facts, this.servers), this.drains.node, this.moves.node);
  }

  async learn({name, query}) {
    const [host, {moves, next}, {drains}] = await Promise.all([this.client.get(`v1/hosts/${segment(name)}`),
      this.client.get(`v1/moves?limit=${MOST}&host=${segment(name)}&${conditions(query, ['since', 'until'])}`), this.client.get('v1/drains')]);
    return {host, moves, hasMore: next !== null, drains: drains.filter(drain => drain.host === name)};
  }

  draw({host, moves, hasMore, drains}, status, address) {
    if (host.name !== this.name) {
      this.name = host.name;
      this.title.replaceChildren(host.name);
      this.servers.replaceChildren();
      const {actions} = this;
      this.buttons.replaceChildren(...[button('Servers on it now', () => this.ask(host.name), {id: 'occupancy'}),
        actions.may('drains:begin') ? button('Drain…', () => actions.drain(host.name), {id: 'drain-host'}) : null].filter(Boolean));
    }
    const serviced = status.maintenance?.hosts.find(each => each.host === host.name);
    const facts = [['State', stateBadge(host.state)], ['Servers', host.servers ?? '–'], ['Aggregates', host.aggregates.length ? host.aggregates.map(name => [aggregateLink(name), ' ']) : 'none in scope'],
      ['Maintenance', serviced ? badge(serviced.state, 'plain') : null], ['Measured', host.scores.length ? dated(host.scores[0].measured_at) : 'never']].filter(([, value]) => value !== null);
    const now = JSON.stringify([host, serviced]);
    if (now !== this.before) this.facts.replaceChildren(el('dl', {class: 'facts'}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))), el('div', {}, scoreParts(host.scores)));
    this.before = now;
    this.drains.node.hidden = !drains.length;
    this.drains.show(drains);
    this.filters.show(address);
    this.moves.show(moves, hasMore);
  }

  /* Nova is asked on request only, because its answer takes seconds. */
  async ask(name) {
    this.servers.replaceChildren('Nova is asked…');
    const said = await this.client.get(`v1/hosts/${segment(name)}/occupancy`).then(occupied, error => [el('div', {class: 'bad'}, error.message)]);
    if (name === this.name) this.servers.replaceChildren(...said);
  }
}

function occupied({state, service, servers}) {
  return [el('p', {}, `By Nova: ${state}; nova-compute is ${service.state} and ${service.status}${service.disabled_reason ? ` (${service.disabled_reason})` : ''}.`),
    servers.length ? scrolled('Servers on it', table('Servers on it', [['Server'], ['Status'], ['Task']], el('tbody', {}, servers.map(server => el('tr', {}, el('th', {scope: 'row'}, serverLink(server.name, server.uuid)),
      el('td', {}, server.status), el('td', {}, server.task_state ?? ''))))), {class: 'scroll short'}) : null].filter(Boolean);
}
