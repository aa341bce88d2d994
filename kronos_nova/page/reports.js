/* Sums of moves and of their effect. */

import { el, memory, scrolled, table } from './elements.js';
import { columns } from './charts.js';
import { segment } from './client.js';
import { conditions, Filters, RANGE } from './filters.js';
import { dated } from './links.js';
import { View } from './view.js';

const BY = [['month', 'month'], ['project', 'project'], ['aggregate', 'aggregate'], ['month project', 'month and project'], ['month aggregate', 'month and aggregate']];
const KINDS = [['completed', 'after'], ['failed', 'bad'], ['abandoned', 'before']];
const LOADS = [['Minutes of hot hosts', 'hot_seconds'], ['Minutes of servers on full hosts', 'contended_seconds']], COMPARED = [['with the moves', 'after'], ['without moves', 'before']];
const minutes = seconds => seconds === null ? null : seconds / 60;
const written = seconds => seconds === null ? 'not known' : Math.round(seconds / 60).toLocaleString('en');

export class ReportsView extends View {
  constructor(page) {
    super(page, 'reports');
    this.filters = new Filters('reports', [{name: 'by', label: 'For each', type: 'select', options: BY}, {name: 'aggregate', label: 'Aggregate', placeholder: 'all'}, {name: 'project', label: 'Project', placeholder: 'uuid'}, ...RANGE], page.go);
    this.chart = el('div', {class: 'charts'});
    this.list = el('div');
    this.compared = el('section', {id: 'compared'});
    this.node.append(el('section', {id: 'report'}, el('h2', {}, 'Moves and loads in sums'), this.filters.node, this.chart, this.list), this.compared);
  }

  /* Sums of years are requested once, and again when the conditions change. */
  async learn(address) {
    const key = JSON.stringify(address);
    if (key !== this.learntFor) {
      const by = (address.query.by || 'month').split(' ').map(name => `by=${segment(name)}`).join('&');
      this.report = await this.client.get(`v1/report?${by}&${conditions(address.query, ['aggregate', 'project', 'since', 'until'])}`);
      this.learntFor = key;
    }
    return this.report;
  }

  draw(report, _status, address) {
    if (report === this.shown) return;
    this.shown = report;
    this.filters.show({...address, query: {by: 'month', ...address.query}});
    const by = (address.query.by || 'month').split(' '), name = sums => by.map(each => sums[each] ?? 'not known').join(', ');
    this.chart.replaceChildren(...(report.sums.length ? [columns('Moves', KINDS, report.sums.map(sums => [name(sums), KINDS.map(([kind]) => sums[kind])])),
      columns('Memory moved, GiB', [['completed', 'after']], report.sums.map(sums => [name(sums), [sums.memory_mb / 1024]])),
      ...(report.sums.some(sums => sums.hot_seconds !== null) ? LOADS.map(([label, field]) => columns(label, COMPARED, report.sums.map(sums => [name(sums), [minutes(sums[field]), minutes(sums[`unmoved_${field}`])]]))) : [])] : []));
    this.list.replaceChildren(report.sums.length ? scrolled('Moves and loads in sums', table('Moves and loads in sums', [...by.map(each => [each[0].toUpperCase() + each.slice(1)]), ['Completed', 'num'], ['Failed', 'num'], ['Abandoned', 'num'], ['Servers', 'num'], ['Memory', 'num'], ['Minutes', 'num'], ['Hot host minutes', 'num'], ['Contended minutes', 'num'], ['Hot without moves', 'num'], ['Contended without moves', 'num']],
      el('tbody', {}, report.sums.map(sums => row(by, sums))), {class: 'cards'}), {class: 'scroll whole'}) : el('div', {class: 'muted'}, 'No move ended in that time, and there is no evaluation of it in the database.'),
    el('div', {class: 'muted'}, 'From ', dated(report.since), ' to ', dated(report.until), ...(report.oldest ? ['; the oldest move in the database ended ', dated(report.oldest)] : []), '.'));
    this.compared.replaceChildren(...comparison(report.comparison));
  }
}

const row = (by, sums) => el('tr', {}, by.map(each => el('th', {scope: 'row', class: 'full'}, sums[each] ?? 'not known')),
  [['Completed', sums.completed], ['Failed', sums.failed], ['Abandoned', sums.abandoned], ['Servers', sums.servers ?? 'not known'], ['Memory', memory(sums.memory_mb)], ['Minutes', written(sums.seconds)], ['Hot host minutes', written(sums.hot_seconds)], ['Contended minutes', written(sums.contended_seconds)], ['Hot without moves', written(sums.unmoved_hot_seconds)], ['Contended without moves', written(sums.unmoved_contended_seconds)]]
    .map(([name, value]) => el('td', {class: 'num', 'data-label': name}, `${value}`)));

/* The load before the first move, after it, and without moves, where these are known. */
function comparison({explanation, before, after, without_moves: unmoved}) {
  const rows = [['Before', before], ['After', after], ['Without moves', unmoved]].filter(([, load]) => load).map(([name, load]) => el('tr', {}, el('th', {scope: 'row', class: 'full'}, `${name}: ${load.since} to ${load.until}`),
    [['Hot hosts', load.hot_minutes], ['Servers on full hosts', load.contended_minutes], ['Days observed', load.observed_days]].map(([label, value]) => el('td', {class: 'num', 'data-label': label}, value.toLocaleString('en', {maximumFractionDigits: 1})))));
  return [el('h2', {}, 'Before and after'), el('p', {}, explanation), ...(rows.length ? [scrolled('Before and after', table('Minutes a day of an aggregate', [['Time'], ['Hot hosts', 'num'], ['Servers on full hosts', 'num'], ['Days observed', 'num']],
    el('tbody', {}, rows), {class: 'cards'}))] : [])];
}
