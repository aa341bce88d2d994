/* Hosts that are serviced or drained. */

import { el } from './elements.js';
import { Maintenance } from './fleet.js';
import { dated } from './links.js';
import { drainsList } from './lists.js';
import { View } from './view.js';

export class MaintenanceView extends View {
  constructor(page) {
    super(page, 'maintenance');
    this.maintenance = new Maintenance();
    this.more = el('div', {class: 'muted'});
    this.none = el('section', {}, el('h2', {}, 'Maintenance'), el('div', {class: 'muted'}, 'No maintenance is in progress; "kronos-manage maintenance run" begins one.'));
    this.drains = drainsList(page.actions);
    this.maintenance.node.append(this.more);
    this.node.append(this.maintenance.node, this.none, this.drains.node);
  }

  async learn(_address, status) {
    const [{drains}, maintained] = await Promise.all([this.client.get('v1/drains'), status.then(({maintenance}) => maintenance && this.client.get('v1/maintenance'))]);
    return {drains, maintained};
  }

  draw({drains, maintained}, status) {
    this.isEmptying = drains.some(drain => ['draining', 'requested'].includes(drain.state));
    this.maintenance.show(status.maintenance);
    this.none.hidden = Boolean(status.maintenance);
    this.more.replaceChildren(...(maintained ? ['Begun ', dated(maintained.requested_at), `; ${maintained.serviced} of ${maintained.hosts.length} serviced`,
      ...(maintained.expected_end ? ['; expected to end ', dated(maintained.expected_end)] : []), maintained.is_run ? '.' : '; no process runs it: "kronos-manage maintenance resume" continues it.'] : []));
    this.drains.show(drains);
  }

  get isBusy() {
    return this.isEmptying;
  }
}
