/* One aggregate: its levels, its imbalance over time, its hosts, its plan, and what stays and why. */

import { ago, button, el, put, when } from './elements.js';
import { course, courseTable } from './charts.js';
import { healthKind, healthText } from './fleet.js';
import { Hosts } from './hosts.js';
import { outcomeBadge, policiesPart, stayedPart } from './parts.js';
import { plansList } from './lists.js';
import { PlanPart } from './plan.js';
import { Explain } from './explain.js';

export class AggregatePart {
  constructor(client, actions) {
    this.actions = actions;
    this.title = el('h2');
    this.facts = el('div');
    this.buttons = el('span', {class: 'tools'});
    this.hosts = new Hosts(true);
    this.plan = new PlanPart(actions);
    this.plans = plansList(client);
    this.course = el('section', {class: 'course', id: 'history'});
    this.stayed = el('div');
    this.node = el('div', {id: 'aggregate'},
      el('section', {id: 'chosen'}, el('div', {class: 'head'}, this.title, this.buttons), this.facts),
      el('div', {class: 'columns'}, this.course, this.policiesSection = el('section', {id: 'policies'}, el('h2', {}, 'Policies at the last evaluation'))),
      this.hosts.node,
      this.plan.node, this.plans.node,
      el('section', {id: 'stayed'}, el('h2', {}, 'What stays, and why'), this.stayed, new Explain(client).node));
  }

  /* aggregate: as the list has it; found: {evaluation, history, plan, moves}; drains: those of the cloud */
  show(aggregate, found, drains) {
    put(this.title, aggregate.name);
    this.drawButtons(aggregate);
    this.drawFacts(aggregate, found.evaluation);
    if (found.evaluation !== this.evaluation || JSON.stringify(drains) !== this.drained) this.drawHosts(found.evaluation, drains);
    if (found.evaluation !== this.evaluation) this.drawEvaluation(found.evaluation);
    if (found.history !== this.history) this.drawHistory(found.history);
    [this.evaluation, this.history, this.drained] = [found.evaluation, found.history, JSON.stringify(drains)];
    this.plan.show(found.plan, aggregate.plan, found.moves);
    this.plans.show(found.plans);
  }

  drawButtons(aggregate) {
    const {actions} = this, key = JSON.stringify([aggregate.name, aggregate.paused, aggregate.level, [...actions.permitted]]);
    if (key === this.buttonsBefore) return;
    this.buttonsBefore = key;
    const offered = (name, text, run, attributes) => actions.may(name) ? button(text, run, attributes) : null;
    this.buttons.replaceChildren(...[
      aggregate.paused ? offered('automation:resume', 'Resume…', () => actions.resume(aggregate.name), {id: 'resume'}) : offered('automation:pause', 'Pause…', () => actions.pause(aggregate.name), {id: 'pause'}),
      offered('automation:stop', 'Stop…', () => actions.stop(aggregate.name), {id: 'stop', class: 'danger'}),
      offered('automation:set', 'Level…', () => actions.level(aggregate), {id: 'level'})].filter(Boolean));
  }

  drawFacts(aggregate, evaluation) {
    const facts = [['Health', el('span', {class: `health ${healthKind(aggregate.health)}`}, `${healthText(aggregate.health)}${aggregate.health === null ? '' : ' of 100'}`)],
      ['Level', `${aggregate.level}${aggregate.set_by ? `, set by ${aggregate.set_by}` : ''}`], ['Paused', aggregate.paused],
      ['Last evaluation', [outcomeBadge(aggregate.outcome, []), ` ${aggregate.reason}`]], ['Evaluated', aggregate.evaluated_at ? `${when(aggregate.evaluated_at)}, ${ago(aggregate.evaluated_at)}` : null],
      ['Next', aggregate.next_at ? when(aggregate.next_at) : null], ['Moves may start', aggregate.window_opens_at ? `from ${when(aggregate.window_opens_at)}` : null],
      ['How', evaluation?.planner ? `${evaluation.mode}, planner ${evaluation.planner}` : null]].filter(([, value]) => value);
    this.facts.replaceChildren(el('dl', {class: 'facts'}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...aggregate.warnings.map(text => el('div', {class: 'warning'}, text)));
  }

  drawHosts(evaluation, drains) {
    const draining = new Map(drains.map(drain => [drain.host, drain.state]));
    this.hosts.show(evaluation.scored_by, evaluation.hosts.map(host => ({
      name: host.name, state: host.state, servers: [host.servers, host.servers_after],
      scores: host.scores.map((score, n) => score === null ? null : [score, host.scores_after[n]]),
      mark: draining.get(host.name), notes: draining.has(host.name) ? [[`drain ${draining.get(host.name)}`, 'plain']] : []})));
  }

  drawEvaluation(evaluation) {
    const policies = evaluation.policies.map(policy => ({...policy, before: policy.imbalance_before, after: policy.imbalance_after}));
    this.policiesSection.replaceChildren(this.policiesSection.firstChild, policies.length ? policiesPart(policies) : el('div', {class: 'muted'}, 'Nothing was measured.'),
      el('div', {class: 'muted'}, evaluation.measured_at ? `Hosts as measured at ${when(evaluation.measured_at)}.` : 'No host was measured yet.'));
    this.stayed.replaceChildren(evaluation.not_moved.length ? stayedPart(evaluation.not_moved) : el('div', {class: 'muted'}, 'At the last evaluation no server was considered and left.'));
  }

  drawHistory(history) {
    const charts = history.policies.map((name, n) => course(name, history.points.map(point => ({at: new Date(point.at), value: point.imbalances[n]})), history.thresholds[n])).filter(Boolean);
    this.course.replaceChildren(el('h2', {}, 'Imbalance, the last 24 hours'), charts.length ? el('div', {class: 'charts'}, charts) : el('div', {class: 'muted'}, 'Nothing was measured.'),
      ...(charts.length ? [courseTable(history)] : []));
  }
}
