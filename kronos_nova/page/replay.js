/* The page of a replay: the plans that Kronos would make, or would have made. */

import { byId, el, change, badge, figure, moment, plural, put, table, scrolled } from './elements.js';
import { bar } from './charts.js';
import { Hosts } from './hosts.js';
import { above, isMeasured, hostsOf, movesPart, outcomeBadge, policiesPart, stayedPart, warningsPart } from './parts.js';
import { startTheme } from './theme.js';

const DATA = JSON.parse(byId('data').textContent);

function hostsPart(aggregate) {
  const hosts = new Hosts(true), part = hosts.node;
  byId('aggregate').append(part);
  hosts.show(aggregate.policies.map(policy => policy.name), aggregate.hosts.map(host => ({
    ...host, notes: aggregate.emptied.includes(host.name) ? [['emptied', 'good']] : []})));
}

function showAggregate(aggregate) {
  for (const row of byId('aggregates').querySelectorAll('tbody tr')) {
    const chosen = row.dataset.name === aggregate.name;
    row.setAttribute('data-chosen', String(chosen));
    row.querySelector('button').setAttribute('aria-pressed', String(chosen));
  }
  byId('aggregate').replaceChildren(...[warningsPart(aggregate.warnings),
    el('section', {id: 'policies'}, el('h2', {}, 'Imbalance by policy'), policiesPart(aggregate.policies, [aggregate.before, aggregate.after]))].filter(Boolean));
  hostsPart(aggregate);
  if (aggregate.moves.length) byId('aggregate').append(movesPart(aggregate.moves, aggregate.before));
  if (aggregate.not_moved.length) byId('aggregate').append(el('section', {id: 'stayed'}, el('h2', {}, 'Servers that stay, and why'), stayedPart(aggregate.not_moved)));
}

const missed = policies => policies.filter(above).length;

function row(aggregate) {
  const worst = missed(aggregate.policies), measured = aggregate.policies.filter(isMeasured).length;
  return el('tr', {'data-name': aggregate.name},
    el('th', {scope: 'row'}, el('button', {type: 'button', class: 'link', on: {click: () => showAggregate(aggregate)}}, aggregate.name)),
    el('td', {}, outcomeBadge(aggregate.outcome, aggregate.policies)),
    el('td', {class: 'num'}, aggregate.before === null ? 'not measured' : change(aggregate.before, aggregate.after)),
    el('td', {class: 'num'}, measured ? `${measured - worst} of ${measured}` : '–'),
    el('td', {class: 'num'}, `${aggregate.moves.length}`), el('td', {class: 'num'}, hostsOf(aggregate.hosts.length)),
    el('td', {class: 'num'}, `${aggregate.emptied.length}`), el('td', {class: 'muted'}, `${aggregate.mode}, planner ${aggregate.planner}`));
}

function showCycle(cycle) {
  put(byId('when'), `${cycle.label} · ${moment(new Date(cycle.taken_at))} · planned in ${cycle.planning_seconds} s${cycle.note ? ` · ${cycle.note}` : ''}`);
  if (!cycle.aggregates.length) {
    byId('aggregates').replaceChildren();
    byId('aggregate').replaceChildren(el('section', {}, 'No aggregate is in scope.'));
    return;
  }
  byId('aggregates').replaceChildren(el('h2', {}, plural(cycle.aggregates.length, 'aggregate')), scrolled('Aggregates', table('Aggregates',
    [['Aggregate'], ['Outcome'], ['Combined imbalance', 'num'], ['Policies within', 'num'], ['Moves', 'num'], ['Hosts', 'num'], ['Emptied', 'num'], ['How']],
    el('tbody', {}, cycle.aggregates.map(row)))));
  showAggregate([...cycle.aggregates].sort((a, b) => b.moves.length - a.moves.length)[0]);
}

/* Several snapshots: the results of each. */
function showDay() {
  const count = cycle => cycle.aggregates.reduce((sum, aggregate) => sum + aggregate.moves.length, 0);
  const rows = DATA.cycles.map(cycle => {
    const measured = cycle.aggregates.filter(aggregate => aggregate.before !== null), over = missed(cycle.aggregates.flatMap(aggregate => aggregate.policies));
    const worst = part => Math.max(...measured.map(aggregate => aggregate[part]));
    const pick = () => { rows.forEach(other => other.setAttribute('data-chosen', String(other === made))); showCycle(cycle); };
    const made = el('tr', {on: {click: pick}},
      el('th', {scope: 'row'}, el('button', {type: 'button', class: 'link'}, cycle.label)), el('td', {}, moment(new Date(cycle.taken_at))), el('td', {class: 'num'}, `${count(cycle)}`),
      measured.length ? [el('td', {class: 'num'}, `${figure(worst('before'))} → ${figure(worst('after'))}`), el('td', {class: 'wide'}, bar(worst('before'), worst('after')))]
        : [el('td', {class: 'num'}, badge('no data', 'bad')), el('td')],
      el('td', {}, over ? badge(`${plural(over, 'policy').replace('policys', 'policies')} above threshold`, 'warn') : null));
    return made;
  });
  byId('day').hidden = false;
  byId('day').append(el('h2', {}, `${plural(rows.length, 'snapshot')}, each planned by itself: ${plural(DATA.cycles.reduce((sum, cycle) => sum + count(cycle), 0), 'move')} in all`),
    scrolled('Snapshots', table('Snapshots', [['Snapshot'], ['Taken at'], ['Moves', 'num'], ['Largest combined imbalance', 'num'], ['Before and after'], ['']],
      el('tbody', {}, rows), {class: 'day'}), {class: 'scroll short'}));
  rows[0].click();
}

startTheme();
if (DATA.cycles.length > 1) showDay();
else if (DATA.cycles.length) showCycle(DATA.cycles[0]);
