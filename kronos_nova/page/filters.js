/* Conditions of a list, as a form. They are part of the address, so that a list can be sent to others. */

import { addressOf } from './address.js';
import { el } from './elements.js';

/* Times are entered and shown in UTC, as on the whole page. */
export const RANGE = [
  {name: 'since', label: 'From (UTC)', type: 'datetime-local'},
  {name: 'until', label: 'To (UTC)', type: 'datetime-local'}];

const TIMES = new Set(['since', 'until', 'at']);
const MINUTES = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

/* Forms leave out the seconds, which the API requires. */
const asTime = text => `${text}${MINUTES.test(text) ? ':00' : ''}Z`;

function input({name, label, type = 'search', options, placeholder}) {
  const field = type === 'select' ? el('select', {name}, options.map(([value, text]) => el('option', {value}, text)))
    : el('input', {type, name, placeholder, maxlength: type === 'search' ? 255 : null});
  return el('label', {}, `${label} `, field);
}

export class Filters {
  constructor(view, fields, go) {
    this.view = view;
    this.node = el('form', {class: 'tools filters', 'aria-label': 'Conditions'}, fields.map(input), el('button', {type: 'submit'}, 'Show'));
    this.node.addEventListener('submit', event => {
      event.preventDefault();
      go(addressOf(view, this.name, Object.fromEntries(this.inputs.map(field => [field.name, field.value.trim()]))));
    });
  }

  get inputs() {
    return [...this.node.elements].filter(field => field.name);
  }

  /* Fills the form from a new address. For the address that is shown, text that is being typed stays. */
  show({name, query}) {
    const now = JSON.stringify([name, query]);
    if (now === this.before) return;
    this.before = now;
    this.name = name;
    for (const field of this.inputs) field.value = query[field.name] ?? '';
  }

  /* The options of a select, which may be known later than the form. */
  offer(name, options) {
    const field = this.inputs.find(each => each.name === name), {value} = field;
    if (JSON.stringify([...field.options].map(each => each.value)) === JSON.stringify(options.map(([each]) => each))) return;
    field.replaceChildren(...options.map(([each, text]) => el('option', {value: each}, text)));
    field.value = value || JSON.parse(this.before)[1][name] || '';
  }
}

/* The conditions as parameters of the API. */
export function conditions(query, names) {
  const given = names.filter(name => query[name]).map(name => [name, TIMES.has(name) ? asTime(query[name]) : query[name]]);
  return new URLSearchParams(given).toString();
}
