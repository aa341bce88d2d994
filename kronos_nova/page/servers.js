/* Servers by name, servers in quarantine, and moves of a period. */

import { conditions, Filters, RANGE } from './filters.js';
import { movesList, quarantineList, serversList } from './lists.js';
import { View } from './view.js';

const MOST = 100;
const STATES = ['', 'planned', 'migrating', 'completed', 'failed', 'abandoned'];

export class ServersView extends View {
  constructor(page) {
    super(page, 'servers');
    this.names = serversList();
    this.filters = new Filters('servers', [{name: 'name', label: 'Name', placeholder: 'a part of it'}, {name: 'project', label: 'Moves of project', placeholder: 'uuid'},
      {name: 'state', label: 'State', type: 'select', options: STATES.map(state => [state, state || 'all'])}, ...RANGE], page.go);
    this.quarantine = quarantineList(page.actions);
    this.moves = movesList('Moves', 'No server was moved in that time.');
    this.names.node.insertBefore(this.filters.node, this.names.empty);
    this.node.append(this.names.node, this.moves.node, this.quarantine.node);
  }

  async learn({query}) {
    const [{servers}, {moves, next}, quarantine] = await Promise.all([this.client.get(`v1/servers?limit=${MOST}&${conditions(query, ['name'])}`),
      this.client.get(`v1/moves?limit=${MOST}&${conditions(query, ['project', 'state', 'since', 'until'])}`), this.client.get('v1/quarantine')]);
    return {servers, moves, hasMore: next !== null, quarantined: quarantine.servers};
  }

  draw({servers, moves, hasMore, quarantined}, _status, address) {
    this.filters.show(address);
    this.names.show(servers);
    this.moves.show(moves, hasMore);
    this.quarantine.show(quarantined);
  }
}
