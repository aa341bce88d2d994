/* Effects of a plan: policies, imbalance after each move, and hosts that gain or lose servers. */

import { el, memory, percent, plural, scrolled, table } from './elements.js';
import { bar, descent } from './charts.js';
import { hostLink } from './links.js';
import { policiesPart } from './parts.js';

const MOST_HOSTS = 200;

/* {host: {lost, won, change of memory}}, sorted by the change, the largest first. */
export function changedHosts(moves) {
  const hosts = new Map(), at = name => hosts.get(name) ?? hosts.set(name, {name, lost: 0, won: 0, memory: 0}).get(name);
  for (const {source, destination, memory_mb: size} of moves) {
    const [left, entered] = [at(source), at(destination)];
    left.lost += 1;
    left.memory -= size;
    entered.won += 1;
    entered.memory += size;
  }
  return [...hosts.values()].sort((a, b) => Math.abs(b.memory) - Math.abs(a.memory) || a.name.localeCompare(b.name));
}

const highest = scores => scores?.reduce((most, score) => score === null ? most : Math.max(most ?? 0, score), null) ?? null;

/* The load of a host in its fullest policy, where the evaluation of the plan is known. */
function load(host) {
  const [before, after] = [highest(host?.scores), highest(host?.scores_after)];
  return before === null || after === null ? '–' : el('div', {class: 'cell'}, bar(before, after), el('span', {class: 'num'}, `${percent(before)} → ${percent(after)}`));
}

function hostsPart(moves, hosts) {
  const changed = changedHosts(moves), signed = size => `${size < 0 ? '−' : '+'}${memory(Math.abs(size))}`;
  const rows = () => changed.slice(0, MOST_HOSTS).map(host => el('tr', {}, el('th', {scope: 'row', class: 'full'}, hostLink(host.name)),
    el('td', {class: 'num', 'data-label': 'Servers'}, [host.lost ? `−${host.lost}` : '', host.won ? `+${host.won}` : ''].filter(Boolean).join(' ')),
    el('td', {class: 'num', 'data-label': 'Memory'}, signed(host.memory)), hosts ? el('td', {class: 'full'}, load(hosts.get(host.name))) : null));
  const details = el('details', {class: 'figures', id: 'changed-hosts'}, el('summary', {}, `${plural(changed.length, 'host')} before and after`));
  details.addEventListener('toggle', () => {
    if (!details.open || details.children.length > 1) return;
    details.append(scrolled('Hosts before and after', table('Hosts before and after', [['Host'], ['Servers', 'num'], ['Memory', 'num'], ...(hosts ? [['Load by its fullest policy']] : [])], el('tbody', {}, rows()), {class: 'cards'}), {class: 'scroll short'}),
      ...(changed.length > MOST_HOSTS ? [el('div', {class: 'muted'}, `and ${changed.length - MOST_HOSTS} more`)] : []));
  });
  return details;
}

export class Picture {
  constructor() {
    this.node = el('div', {class: 'picture'});
  }

  /* plan: with its report, which is kept for a shorter time than the plan; hosts: Map of the hosts of the evaluation, or null */
  show(plan, moves, hosts) {
    const now = JSON.stringify([plan.uuid, moves.length, Boolean(plan.report), Boolean(hosts)]);
    if (now === this.before) return;
    this.before = now;
    const planned = plan.report?.moves ?? [], policies = (plan.report?.policies ?? []).map(policy => ({...policy, before: policy.imbalance_before, after: policy.imbalance_after}));
    this.node.replaceChildren(...[
      policies.length ? policiesPart(policies, [plan.combined_before, plan.combined_after], 'Imbalance before and after the plan') : null,
      planned.length > 1 && plan.combined_before !== null ? descent([plan.combined_before, ...planned.map(move => move.combined_after)]) : null,
      moves.length ? hostsPart(moves, hosts) : null].filter(Boolean));
  }
}
