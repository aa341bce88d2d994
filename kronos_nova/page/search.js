/* Hosts and servers whose names contain the searched text. */

import { conditions } from './filters.js';
import { serversList } from './lists.js';
import { hostsList } from './machines.js';
import { View } from './view.js';

const MOST = 50;

export class SearchView extends View {
  constructor(page) {
    super(page, 'search');
    this.heading = 'Search';
    [this.hosts, this.servers] = [hostsList(), serversList()];
    this.node.append(this.hosts.node, this.servers.node);
  }

  async learn({query}) {
    const part = conditions(query, ['name']);
    const [{hosts}, {servers}] = await Promise.all([this.client.get(`v1/hosts?limit=${MOST}&${part}`), this.client.get(`v1/servers?limit=${MOST}&${part}`)]);
    return {hosts, servers};
  }

  draw({hosts, servers}) {
    this.hosts.show(hosts);
    this.servers.show(servers);
  }
}
