/* Present and past plans, and one of them in full. */

import { addressOf } from './address.js';
import { el } from './elements.js';
import { segment } from './client.js';
import { conditions, Filters, RANGE } from './filters.js';
import { plansList } from './lists.js';
import { stayedPart } from './parts.js';
import { PlanPart } from './plan.js';
import { View } from './view.js';

const STATES = ['', 'observed', 'proposed', 'approved', 'executing', 'done', 'rejected', 'expired', 'superseded', 'stopped', 'void'];
const OPEN = ['proposed', 'approved', 'executing'];
const MOST = 100;

export class PlansView extends View {
  constructor(page) {
    super(page, 'plans');
    this.filters = new Filters('plans', [{name: 'aggregate', label: 'Aggregate', type: 'select', options: [['', 'all']]},
      {name: 'state', label: 'State', type: 'select', options: STATES.map(state => [state, state || 'all'])}, ...RANGE], page.go);
    this.list = plansList();
    this.list.node.insertBefore(this.filters.node, this.list.empty);
    this.plan = new PlanPart(page.actions);
    this.stayed = el('div');
    this.all = el('p', {}, el('a', {href: addressOf('plans')}, 'All plans'));
    this.staying = el('section', {id: 'stayed'}, el('h2', {}, 'Servers that stayed, and why'), this.stayed);
    this.one = el('div', {}, this.all, this.plan.node, this.staying);
    this.node.append(this.list.node, this.one);
  }

  async learn({name, query}) {
    if (!name) {
      const [{plans, next}, {aggregates}] = await Promise.all([
        this.client.get(`v1/plans?limit=${MOST}&${conditions(query, ['aggregate', 'state', 'since', 'until'])}`), this.client.get('v1/aggregates')]);
      return {plans, hasMore: next !== null, aggregates};
    }
    const plan = await this.client.get(`v1/plans/${segment(name)}`), isOpen = OPEN.includes(plan.state);
    const [moves, aggregate, evaluation] = await Promise.all([
      plan.state === 'proposed' || plan.state === 'observed' ? [] : this.client.all(`v1/moves?plan=${segment(name)}`, 'moves'),
      isOpen ? this.client.get(`v1/aggregates/${segment(plan.aggregate)}`) : null,
      plan.state === 'proposed' ? this.client.get(`v1/aggregates/${segment(plan.aggregate)}/evaluation`) : null]);
    return {plan, moves, open: aggregate?.plan?.uuid === plan.uuid ? aggregate.plan : null, evaluation};
  }

  draw(found, _status, address) {
    const isOne = Boolean(address.name);
    this.list.node.hidden = isOne;
    this.one.hidden = !isOne;
    this.isRunning = found.plan?.state === 'executing';
    if (!isOne) {
      this.filters.show(address);
      this.filters.offer('aggregate', [['', 'all'], ...found.aggregates.map(each => [each.name, each.name])]);
      this.list.show(found.plans, found.hasMore);
      return;
    }
    this.plan.show(found.plan, found.open, found.moves, found.evaluation && new Map(found.evaluation.hosts.map(host => [host.name, host])));
    const stayed = found.plan.report?.not_moved ?? [];
    this.staying.hidden = !stayed.length;
    this.stayed.replaceChildren(stayedPart(stayed));
  }

  get isBusy() {
    return this.isRunning;
  }
}
