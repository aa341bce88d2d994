/* All hosts of the cloud, by name and load. */

import { badge, el, percent, put } from './elements.js';
import { bar } from './charts.js';
import { conditions, Filters } from './filters.js';
import { aggregateLink, hostLink } from './links.js';
import { List } from './lists.js';
import { View } from './view.js';

const MOST = 200;

export const stateBadge = state => state === null ? badge('not evaluated yet', 'plain') : badge(state, state === 'up' ? 'good' : 'warn');
export const scoreParts = scores => scores.length ? scores.map(score => el('div', {class: 'cell'}, bar(score.value), el('span', {class: 'num'}, `${score.policy} ${percent(score.value)}`))) : 'not measured';

export const hostsList = () => new List('all-hosts', 'Hosts', 'No host has such a name.', host => host.name, [
  ['Host', host => hostLink(host.name), host => host.name, {class: 'full', 'data-label': null}],
  ['State', host => stateBadge(host.state), host => host.state], ['Servers', host => host.servers ?? '–', host => host.servers, {class: 'num'}],
  ['Aggregate', host => host.aggregates.map(name => [aggregateLink(name), ' ']), host => host.aggregates],
  ['Load', host => scoreParts(host.scores), host => host.scores, {class: 'wide full'}]]);

export class HostsView extends View {
  constructor(page) {
    super(page, 'hosts');
    this.filters = new Filters('hosts', [{name: 'name', label: 'Name', placeholder: 'a part of it'}], page.go);
    this.list = hostsList();
    this.list.table.className = 'scroll whole';
    this.rest = el('div', {class: 'muted'});
    this.list.node.insertBefore(this.filters.node, this.list.empty);
    this.list.node.append(this.rest);
    this.node.append(this.list.node);
  }

  learn({query}) {
    return this.client.get(`v1/hosts?limit=${MOST}&${conditions(query, ['name'])}`);
  }

  draw({hosts, next}, _status, address) {
    this.filters.show(address);
    this.list.show(hosts);
    put(this.rest, next ? `The first ${hosts.length} by name are shown. Type a part of a name to find others; the view of an aggregate shows all of its hosts as a map.` : '');
  }
}
