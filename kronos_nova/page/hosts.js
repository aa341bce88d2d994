/* The hosts of an aggregate: as a map, as a table, and as a curve of their loads. */

import { el, badge, button, percent, plural, put, table, scrolled, Rows } from './elements.js';
import { bar, curve } from './charts.js';
import { HeatMap } from './heatmap.js';

const FEW = 24;
const MOST_ROWS = 200;

const known = value => value === null || value === undefined ? -1 : value;
const changed = host => Math.max(...host.scores.map(score => score ? Math.abs(score[1] - score[0]) : 0), host.servers[0] === host.servers[1] ? 0 : 1e-6);
const ORDERS = {
  'fullest first': (part, measure) => (a, b) => known(measure(b, part)) - known(measure(a, part)),
  'most change': () => (a, b) => changed(b) - changed(a),
  'name': () => () => 0,
};

/* hosts, sorted by name: [{name, state, servers: [before, after], scores: [[before, after] or null], mark, notes}]
   with a score for each policy; notes are badges: [[text, kind]]; where: its failure domains as text */
export class Hosts {
  /* plans: whether loads after a plan are drawn; open: called with the name of a chosen host, or null */
  constructor(plans, open = null) {
    this.plans = plans;
    this.open = open;
    this.state = {measure: 'highest', order: 'fullest first', text: '', inPlan: false, view: null};
    this.before = new HeatMap('Load of hosts', open);
    this.after = new HeatMap('Load of hosts after the plan', open);
    this.body = el('tbody');
    this.rows = new Rows(this.body, host => host.name, host => this.row(host));
    this.count = el('span', {class: 'muted', id: 'host-count', role: 'status'});
    this.maps = el('div', {class: 'maps'});
    this.curves = el('div', {class: 'charts'});
    this.list = el('div');
    this.measures = el('select', {id: 'measure', on: {change: event => this.set({measure: event.target.value})}});
    this.views = ['map', 'table'].map(view => button(view === 'map' ? 'Map' : 'Table', () => this.set({view}), {id: `as-${view}`, 'aria-pressed': 'false'}));
    this.only = button('Only hosts in the plan', () => this.set({inPlan: !this.state.inPlan}), {id: 'only', 'aria-pressed': 'false'});
    this.node = el('section', {id: 'hosts'}, el('h2', {}, 'Hosts'), this.curves, this.tools(), this.maps, this.list);
  }

  tools() {
    return el('div', {class: 'tools'},
      el('div', {class: 'pair', role: 'group', 'aria-label': 'Hosts as'}, this.views),
      el('label', {}, 'Load ', this.measures),
      el('label', {}, 'Order ', el('select', {id: 'order', on: {change: event => this.set({order: event.target.value})}},
        Object.keys(ORDERS).map(name => el('option', {}, name)))),
      el('input', {type: 'search', id: 'filter', placeholder: 'Find a host', 'aria-label': 'Find a host', on: {input: event => this.set({text: event.target.value.toLowerCase()})}}),
      this.only, this.count);
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.draw();
  }

  show(policies, hosts) {
    const moved = hosts.some(host => changed(host) > 0);
    if (this.state.view === null && hosts.length) this.state.view = hosts.length > FEW ? 'map' : 'table';
    if (policies.join('\n') !== this.policies?.join('\n')) this.know(policies);
    [this.hosts, this.moved] = [hosts, moved];
    this.only.hidden = !moved;
    this.curves.replaceChildren(...policies.map((name, n) => curve(name, hosts.map(host => host.scores[n]?.[0]),
      moved ? hosts.map(host => host.scores[n]?.[1]) : null)).filter(Boolean));
    this.draw();
  }

  /* The columns change with the policies. */
  know(policies) {
    this.policies = policies;
    this.measures.replaceChildren(...['highest', ...policies].map(name => el('option', {value: name}, name === 'highest' ? 'highest of all' : name)));
    this.state.measure = 'highest';
    this.rows.show([]);
    this.list.replaceChildren(scrolled('Hosts', table('Hosts', [['Host'], ['Servers', 'num'], ...policies.map(name => [name])], this.body, {class: 'cards'})));
  }

  draw() {
    if (!this.hosts) return;
    const {measure, order, text, inPlan, view} = this.state, n = this.policies.indexOf(measure);
    const value = (host, part) => n >= 0 ? host.scores[n]?.[part] ?? null
      : host.scores.reduce((most, score) => score && score[part] > (most ?? -1) ? score[part] : most, null);
    const shown = this.hosts.filter(host => (!inPlan || changed(host) > 0) && `${host.name} ${host.where ?? ''}`.toLowerCase().includes(text)).sort(ORDERS[order](0, value));
    const isMap = view === 'map';
    this.views.forEach((each, index) => each.setAttribute('aria-pressed', String(isMap === (index === 0))));
    this.only.setAttribute('aria-pressed', String(inPlan));
    this.maps.hidden = !isMap;
    this.list.hidden = isMap;
    const rest = isMap ? 0 : Math.max(0, shown.length - MOST_ROWS);
    put(this.count, `${plural(shown.length, 'host')} of ${this.hosts.length.toLocaleString('en')}${rest ? `, the first ${MOST_ROWS} are shown` : ''}`);
    if (isMap) this.map(shown, value);
    else this.rows.show(shown.slice(0, MOST_ROWS));
  }

  map(shown, value) {
    const maps = this.moved && this.plans ? [this.before, this.after] : [this.before];
    if (this.maps.children.length !== maps.length) {
      this.maps.replaceChildren(...maps.map((map, part) => el('div', {}, maps.length > 1 ? el('h3', {}, part ? 'After the plan' : 'Before') : null, map.node)));
    }
    maps.forEach((map, part) => map.show(shown.map(host => ({
      name: host.name, value: value(host, part), state: host.state, mark: Boolean(host.mark), text: this.caption(host, part)})),
    `Map of the load of ${plural(shown.length, 'host')}${part ? ' after the plan' : ''}; arrow keys go from host to host, ${this.open ? 'Enter opens one, ' : ''}the table has the same as text`));
  }

  caption(host, part) {
    const scores = this.policies.map((name, n) => `${name} ${percent(host.scores[n]?.[part])}`).join(', ');
    return [host.where, scores, plural(host.servers[part], 'server'), host.state === 'up' ? null : host.state, host.mark].filter(Boolean).join(', ');
  }

  row(first) {
    const note = el('span'), count = el('td', {class: 'num', 'data-label': 'Servers'}), cells = this.policies.map(name => el('td', {'data-label': name}));
    const name = this.open ? button(first.name, () => this.open(first.name), {class: 'link host'}) : el('span', {class: 'host'}, first.name);
    const node = el('tr', {'data-host': first.name}, el('th', {scope: 'row', class: 'full'}, name, ' ', note), count, cells);
    let before = '';
    return {node, update: host => {
      const now = JSON.stringify(host);
      if (now === before) return;
      before = now;
      note.replaceChildren(...[...(host.state === 'up' ? [] : [[host.state, 'warn']]), ...(host.notes ?? [])].flatMap(([text, kind]) => [badge(text, kind), ' ']));
      put(count, host.servers[0] === host.servers[1] ? `${host.servers[0]}` : `${host.servers[0]} → ${host.servers[1]}`);
      cells.forEach((cell, n) => cell.replaceChildren(load(host.scores[n])));
    }};
  }
}

function load(score) {
  if (!score) return el('span', {class: 'muted'}, 'not measured');
  const [before, after] = score, moves = Math.abs(after - before) >= 0.0005;
  return el('div', {class: 'cell'}, bar(before, moves ? after : null), el('span', {class: 'num'}, moves ? `${percent(before)} → ${percent(after)}` : percent(before)));
}
