/* An overview of the cloud: pauses, notices, aggregates, maintenance and processes. */

import { Fleet, Maintenance, Problems } from './fleet.js';
import { workersList } from './lists.js';
import { View } from './view.js';

export class OverviewView extends View {
  constructor(page) {
    super(page, 'overview');
    [this.problems, this.fleet, this.maintenance, this.workers] = [new Problems(), new Fleet(), new Maintenance(), workersList()];
    this.node.append(this.problems.node, this.fleet.node, this.maintenance.node, this.workers.node);
  }

  async learn() {
    const {aggregates} = await this.client.get('v1/aggregates');
    return aggregates;
  }

  draw(aggregates, status) {
    this.aggregates = aggregates;
    this.problems.show(status.problems);
    this.maintenance.show(status.maintenance);
    this.fleet.show(aggregates, status.pauses);
    this.workers.show(status.workers);
  }

  get isBusy() {
    return this.aggregates?.some(each => each.plan && each.plan.state !== 'proposed');
  }
}
