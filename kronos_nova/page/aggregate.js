/* One aggregate: its levels, imbalance over time, hosts and plan, and the servers that stay with the reason. */

import { addressOf } from './address.js';
import { ago, button, el, put, when } from './elements.js';
import { course, courseTable } from './charts.js';
import { segment } from './client.js';
import { conditions, Filters, RANGE } from './filters.js';
import { healthKind, healthText } from './fleet.js';
import { Hosts } from './hosts.js';
import { dated } from './links.js';
import { outcomeBadge, policiesPart, stayedPart } from './parts.js';
import { PlanPart } from './plan.js';
import { View } from './view.js';

/* The aggregate that is shown first: the one with most to see. */
const foremost = aggregates => [...aggregates].sort((a, b) => Boolean(b.plan) - Boolean(a.plan) || (a.health ?? -1) - (b.health ?? -1))[0];

/* Hosts, or failure domains, that may be lost with all of their servers restarting elsewhere. */
const lossFact = ({level, fits, does_not_fit: not, not_found: unknown, not_judged: unasked, worst, why}) => [
  level === null ? 'Hosts that may be lost' : `Domains that may be lost (${level})`,
  [`${fits} of ${fits + not + unknown + unasked}`, ...[[unknown, 'not known'], [unasked, 'not judged']].filter(([count]) => count).map(([count, word]) => `, ${count} ${word}`),
    ...(worst ? [`; worst is ${worst}: ${why}`] : [])].join('')];

/* An evaluation without data gives no reasons, although no server moves. */
const withoutReasons = outcome => outcome === null ? 'There was no evaluation yet.'
  : outcome === 'planned' ? 'At the last evaluation every server that was considered was planned.' : 'The last evaluation gave no reasons.';

export class AggregateView extends View {
  constructor(page) {
    super(page, 'aggregates');
    this.kept = {};
    this.title = el('h2');
    this.facts = el('div');
    this.buttons = el('span', {class: 'tools'});
    this.others = el('select', {id: 'others', 'aria-label': 'Aggregate', on: {change: () => page.go(addressOf('aggregates', this.others.value))}});
    this.hosts = new Hosts(true, name => page.go(addressOf('hosts', name)));
    this.plan = new PlanPart(page.actions);
    this.filters = new Filters('aggregates', RANGE, page.go);
    this.courses = el('div');
    this.stayed = el('div');
    this.bound = el('section', {id: 'bound', hidden: true});
    this.node.append(this.found = el('div', {id: 'aggregate'},
      el('section', {id: 'chosen'}, el('div', {class: 'head'}, this.title, this.others, this.buttons), this.facts),
      this.plan.node,
      el('div', {class: 'columns'}, el('section', {class: 'course', id: 'history'}, el('h2', {}, 'Imbalance over time'), this.filters.node, this.courses), this.policiesSection = el('section', {id: 'policies'}, el('h2', {}, 'Policies at the last evaluation'))),
      this.hosts.node,
      el('section', {id: 'stayed'}, el('h2', {}, 'Servers that stay, and why'), this.stayed), this.bound),
    this.nothing = el('section', {}, 'No aggregate is in scope.'));
  }

  async learn({name, query}) {
    const [{aggregates}, {drains}] = await Promise.all([this.client.get('v1/aggregates'), this.client.get('v1/drains')]);
    // The aggregate that is shown stays chosen.
    const chosen = name ? aggregates.find(each => each.name === name) ?? await this.client.get(`v1/aggregates/${segment(name)}`)
      : aggregates.find(each => each.name === this.kept.name) ?? foremost(aggregates);
    if (chosen) await this.learnMore(chosen, query);
    return {aggregates, drains, chosen};
  }

  /* Large answers are requested only when their content has changed. */
  async learnMore(aggregate, query) {
    const {name, plan} = aggregate, path = `v1/aggregates/${segment(name)}`, {kept} = this;
    const range = conditions(query, ['since', 'until']), isOther = kept.name !== name, jobs = [];
    const found = isOther ? {name, plan: null, moves: []} : {...kept};
    if (isOther || kept.evaluatedAt !== aggregate.evaluated_at) {
      found.evaluatedAt = aggregate.evaluated_at;
      jobs.push(this.client.get(`${path}/evaluation`).then(answer => { found.evaluation = answer; }));
    }
    if (isOther || kept.evaluatedAt !== aggregate.evaluated_at || kept.range !== range) {
      found.range = range;
      jobs.push(this.client.get(`${path}/history?${range}`).then(answer => { found.history = answer; }));
    }
    if (!plan) Object.assign(found, {plan: null, planState: null, moves: []});
    else {
      if (found.plan?.uuid !== plan.uuid || found.planState !== plan.state) jobs.push(this.client.get(`v1/plans/${plan.uuid}`).then(answer => { found.plan = answer; found.planState = plan.state; }));
      if (plan.state === 'executing') jobs.push(this.client.all(`v1/moves?plan=${plan.uuid}`, 'moves').then(answer => { found.moves = answer; }));
      else found.moves = [];
    }
    await Promise.all(jobs);
    this.learnt = found;
  }

  draw({aggregates, drains, chosen}, _status, address) {
    this.found.hidden = !chosen;
    this.nothing.hidden = Boolean(chosen);
    if (!chosen) return;
    this.kept = this.learnt;
    this.isMoving = Boolean(chosen.plan) && chosen.plan.state !== 'proposed';
    this.offer(aggregates, chosen.name);
    this.filters.show({...address, name: chosen.name});
    this.show(chosen, this.kept, drains);
  }

  get isBusy() {
    return this.isMoving;
  }

  offer(aggregates, name) {
    const names = aggregates.map(each => each.name);
    if (names.join('\n') !== this.offered) this.others.replaceChildren(...names.map(each => el('option', {value: each}, each)));
    this.offered = names.join('\n');
    if (document.activeElement !== this.others) this.others.value = name;
    this.others.hidden = names.length < 2;
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
    const hosts = aggregate.plan?.state === 'proposed' ? new Map(found.evaluation.hosts.map(host => [host.name, host])) : null;
    this.plan.show(found.plan, aggregate.plan, found.moves, hosts);
  }

  drawButtons(aggregate) {
    const {actions} = this, key = JSON.stringify([aggregate.name, aggregate.paused, aggregate.level, aggregate.repairs, [...actions.permitted]]);
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
      ['Level', `${aggregate.level}${aggregate.set_by ? `, set by ${aggregate.set_by}` : ''}`], ['Rule repairs', aggregate.repairs], ['Paused', aggregate.paused],
      ['Failure domains', Object.entries(aggregate.domains ?? {}).map(([level, count]) => `${count} of ${level}`).join(', ')],
      ...(aggregate.losses ?? []).map(lossFact),
      ['Last evaluation', [outcomeBadge(aggregate.outcome, []), ` ${aggregate.reason}`]], ['Evaluated', aggregate.evaluated_at ? `${when(aggregate.evaluated_at)}, ${ago(aggregate.evaluated_at)}` : null],
      ['Next evaluation', aggregate.next_at ? when(aggregate.next_at) : null], ['Moves may start', aggregate.window_opens_at ? `from ${when(aggregate.window_opens_at)}` : null],
      ['How', evaluation?.planner ? `${evaluation.mode}, planner ${evaluation.planner}` : null]].filter(([, value]) => value);
    this.facts.replaceChildren(el('dl', {class: 'facts'}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...aggregate.warnings.map(text => el('div', {class: 'warning'}, text)));
  }

  drawHosts(evaluation, drains) {
    const draining = new Map(drains.map(drain => [drain.host, drain.state]));
    this.hosts.show(evaluation.scored_by, evaluation.hosts.map(host => ({
      name: host.name, state: host.state, servers: [host.servers, host.servers_after],
      scores: host.scores.map((score, n) => score === null ? null : [score, host.scores_after[n]]),
      where: Object.entries(host.domains).map(pair => pair.join('=')).join(', '),
      mark: draining.get(host.name), notes: [
        ...Object.entries(host.domains).map(pair => [pair.join('='), 'plain']),
        ...(draining.has(host.name) ? [[`drain ${draining.get(host.name)}`, 'plain']] : [])]})));
  }

  drawEvaluation(evaluation) {
    const policies = evaluation.policies.map(policy => ({...policy, before: policy.imbalance_before, after: policy.imbalance_after}));
    this.policiesSection.replaceChildren(this.policiesSection.firstChild, policies.length ? policiesPart(policies) : el('div', {class: 'muted'}, 'No load was measured.'),
      el('div', {class: 'muted'}, evaluation.measured_at ? `Hosts as measured at ${when(evaluation.measured_at)}.` : 'No host has been measured yet.'));
    const bound = (evaluation.immovable ?? []).map(({can, why, count}) => ({reason: can === 'cold' ? 'cold only' : 'not at all', count, means: why}));
    this.bound.hidden = !bound.length;
    this.bound.replaceChildren(el('h2', {}, 'Servers that Nova does not migrate live'), stayedPart(bound));
    this.stayed.replaceChildren(evaluation.not_moved.length ? stayedPart(evaluation.not_moved) : el('div', {class: 'muted'}, withoutReasons(evaluation.outcome)));
  }

  drawHistory(history) {
    const charts = history.policies.map((name, n) => course(name, history.points.map(point => ({at: new Date(point.at), value: point.imbalances[n]})), history.thresholds[n])).filter(Boolean);
    const lacks = history.oldest && new Date(history.oldest) > new Date(history.since);
    this.courses.replaceChildren(charts.length ? el('div', {class: 'charts'}, charts) : el('div', {class: 'muted'}, 'No load was measured in that time.'),
      ...(charts.length ? [courseTable(history)] : []),
      el('div', {class: 'muted'}, 'From ', dated(history.since), ' to ', dated(history.until), ...(lacks ? ['; the oldest evaluation in the database is of ', dated(history.oldest)] : []), '.'));
  }
}
