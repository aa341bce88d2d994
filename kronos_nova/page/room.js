/* Room: what is kept for new servers, and questions about a cloud as it is or would be. */

import { badge, el, memory, plural, scrolled, table } from './elements.js';
import { OF_ADDRESSES } from './client.js';
import { Filters } from './filters.js';
import { hostLink, serverLink } from './links.js';
import { roomsList } from './lists.js';
import { View } from './view.js';

/* A question about 1,000 hosts takes some seconds. */
const ANSWER_MS = 120000;
const QUESTIONS = [['', 'nothing'], ['capacity', 'how many servers fit'], ['failover', 'which hosts may fail'], ['what-if', 'what load follows']];
const CHANGES = ['ratio', 'add', 'lose', 'boot'];
/* The fields of each question; those of several words are given once for each word. */
const FIELDS = {capacity: ['flavors', 'aggregate', 'project', 'moves', 'loss', ...CHANGES], failover: ['hosts', 'aggregate', ...CHANGES], 'what-if': ['aggregate', ...CHANGES]};
const SEVERAL = new Set(['flavors', 'hosts', ...CHANGES]);
const VERDICTS = {fits: ['all restart', 'good'], does_not_fit: ['not all restart', 'bad'], not_found: ['not known', 'warn']};
const DIGITS = {maximumFractionDigits: 3};

const figure = value => value === null ? '–' : value.toLocaleString('en', DIGITS);
const words = text => text.split(/[\s,]+/).filter(Boolean);

function conditions(query) {
  const given = FIELDS[query.ask].filter(name => query[name]);
  return new URLSearchParams(given.flatMap(name => (SEVERAL.has(name) ? words(query[name]) : [query[name]]).map(word => [name, word]))).toString();
}

export class RoomView extends View {
  constructor(page) {
    super(page, 'room');
    this.rooms = roomsList();
    this.filters = new Filters('room', [{name: 'ask', label: 'Ask', type: 'select', options: QUESTIONS},
      {name: 'flavors', label: 'Flavors', placeholder: 'all, or m1.large 4:8192:40'}, {name: 'hosts', label: 'Hosts', placeholder: 'all'}, {name: 'aggregate', label: 'Aggregate', placeholder: 'all'},
      {name: 'project', label: 'Project', placeholder: 'uuid'}, {name: 'loss', label: 'After a loss', type: 'select', options: [['', 'no'], ['true', 'yes']]}, {name: 'moves', label: 'After moves', placeholder: '20'},
      {name: 'lose', label: 'If lost', placeholder: 'compute7 rack=r3'}, {name: 'add', label: 'If added', placeholder: '2:like=compute1'},
      {name: 'boot', label: 'If booted', placeholder: '40:m1.large'}, {name: 'ratio', label: 'With ratio', placeholder: 'VCPU=8'}], page.go);
    this.answer = el('div', {id: 'answer', role: 'status'});
    this.node.append(this.rooms.node, el('section', {id: 'question'}, el('h2', {}, 'The cloud as it is, or would be'), this.filters.node, this.answer));
  }

  /* The whole cloud is read for a question: it is asked once, also where it is refused, and again when it changes, or
     when there was no answer. */
  async learn({query}) {
    const key = JSON.stringify(query);
    if (key !== this.askedFor) {
      this.askedFor = key;
      this.asked = FIELDS[query.ask] ? this.question(query) : Promise.resolve(null);
      this.asked.catch(error => { if (this.askedFor === key && !OF_ADDRESSES.includes(error.status)) this.askedFor = null; });
    }
    const [{rooms}, found] = await Promise.all([this.client.get('v1/rooms'), this.asked]);
    return {rooms, found};
  }

  async question(query) {
    return (await this.client.ask('GET', `v1/${query.ask}?${conditions(query)}`, {signal: AbortSignal.timeout(ANSWER_MS)})).json();
  }

  draw({rooms, found}, _status, address) {
    this.rooms.show(rooms);
    this.filters.show(address);
    if (found === this.shown) return;
    this.shown = found;
    this.answer.replaceChildren(...(found ? [...outcome(found.outcome), ...SHOWN[address.query.ask](found)] : []));
  }
}

/* What becomes of servers by the changes that are supposed. */
const outcome = ({left, names, not_booted: missing}) => [
  ...Object.entries(left).map(([uuid, why]) => el('div', {class: 'warning'}, 'Does not restart: ', serverLink(names[uuid], uuid), `: ${why}`)),
  ...Object.entries(missing).map(([flavor, count]) => el('div', {class: 'warning'}, `No room for ${count} of the new servers ${flavor}.`))];

const fullIn = ({full_in_days: days, full_in_days_error: error}) => days === null ? '–' : `${Math.round(days)} ± ${Math.round(error)} days`;

function capacity({slots, not_restarting: hosts}) {
  const columns = [['Now', each => figure(each.now)], ['After loss', each => figure(each.after_loss)], ['After moves', each => figure(each.after_moves)], ['Full in', fullIn], ['Hosts', each => figure(Object.keys(each.hosts).length)]];
  return [hosts.length ? el('div', {class: 'warning'}, `Servers of ${plural(hosts.length, 'host')} do not all restart if their host fails, such as of `, hostLink(hosts[0]), '.') : null,
    scrolled('Servers that fit', table('Servers that fit', [['Flavor'], ...columns.map(([name]) => [name, 'num']), ['Short'], ['Unusable']],
      el('tbody', {}, slots.map(each => el('tr', {}, el('th', {scope: 'row', class: 'full'}, each.flavor), columns.map(([name, value]) => el('td', {class: 'num', 'data-label': name}, value(each))),
        el('td', {'data-label': 'Short'}, each.short ?? '–'), el('td', {class: 'full', 'data-label': 'Unusable'}, Object.entries(each.unusable).map(([name, amount]) => `${figure(amount)} ${name}`).join(', ') || '–')))), {class: 'cards'}), {class: 'scroll whole'})].filter(Boolean);
}

function failover({hosts}) {
  const open = hosts.filter(each => each.verdict !== 'fits'), orderly = hosts.filter(each => each.in_novas_order).length;
  return [el('p', {}, `${hosts.length - open.length} of ${plural(hosts.length, 'host')} may fail with all servers restarting elsewhere, ${orderly} of them in Nova's own order.`),
    ...(open.length ? [scrolled('Hosts that may not fail', table('Hosts that may not fail', [['Host'], ['Verdict'], ['Servers', 'num'], ['Servers that restart nowhere']],
      el('tbody', {}, open.map(each => el('tr', {}, el('th', {scope: 'row', class: 'full'}, hostLink(each.host)), el('td', {'data-label': 'Verdict'}, badge(...VERDICTS[each.verdict])), el('td', {class: 'num', 'data-label': 'Servers'}, `${each.servers}`),
        el('td', {class: 'full'}, Object.entries(each.left).map(([uuid, why]) => el('div', {}, serverLink(each.names[uuid], uuid), ` ${why}`)))))), {class: 'cards'}), {class: 'scroll whole'})] : [])];
}

function whatIf({loads, moves, restarts, problems}) {
  const columns = [['Now', 'now'], ['After the changes', 'changed'], ['After the next plan', 'planned']];
  return [...problems.map(text => el('div', {class: 'warning'}, text)),
    el('p', {}, `Servers that restart elsewhere: ${restarts.length}. Moves of the next plan: ${moves.length}, ${memory(moves.reduce((sum, move) => sum + move.memory_mb, 0))} to copy.`),
    scrolled('Imbalance', table('Imbalance', [['Aggregate and policy'], ...columns.map(([name]) => [name, 'num'])],
      el('tbody', {}, loads.filter(each => each.host === null).map(each => el('tr', {}, el('th', {scope: 'row', class: 'full'}, `${each.aggregate}, ${each.policy}`),
        columns.map(([name, field]) => el('td', {class: 'num', 'data-label': name}, figure(each[field])))))), {class: 'cards'}), {class: 'scroll whole'})];
}

const SHOWN = {capacity, failover, 'what-if': whatIf};
