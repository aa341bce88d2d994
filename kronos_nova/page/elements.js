/* Elements, and the formats of figures, sizes and times. Text is only ever set as text, never as HTML. */

export const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'on') for (const [name, handler] of Object.entries(value)) node.addEventListener(name, handler);
    else if (key === 'style') for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = id => document.getElementById(id);

/* Sets the text of a node only where it differs, so that screen readers do not read it again. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const badge = (text, kind) => el('span', {class: `badge ${kind}`}, text);
export const button = (text, run, attributes = {}) => el('button', {type: 'button', ...attributes, on: {click: run}}, text);
export const table = (caption, columns, body, attributes = {}) => el('table', attributes,
  el('caption', {class: 'unseen'}, caption),
  el('thead', {}, el('tr', {}, columns.map(([name, kind]) => name ? el('th', {class: kind, scope: 'col'}, name) : el('td')))), body);

/* A region with its own scroll bar, which can be reached and scrolled by keyboard. */
export const scrolled = (label, child, attributes = {}) => el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label, ...attributes}, child);

/* Rows that remain the same nodes while their content changes, so that focus and selection remain. They follow
   `after`, or come first. */
export class Rows {
  constructor(body, key, make, after = null) {
    this.body = body;
    this.key = key;
    this.make = make;
    this.after = after;
    this.known = new Map();
  }

  show(items) {
    const gone = new Set(this.known.keys());
    let place = this.after ? this.after.nextSibling : this.body.firstChild;
    for (const item of items) {
      const key = this.key(item);
      gone.delete(key);
      if (!this.known.has(key)) this.known.set(key, this.make(item));
      const row = this.known.get(key);
      row.update(item);
      if (row.node === place) place = place.nextSibling;
      else this.body.insertBefore(row.node, place);
    }
    for (const key of gone) {
      this.known.get(key).node.remove();
      this.known.delete(key);
    }
  }
}

export const figure = value => value === null || value === undefined ? '–' : value.toFixed(3);
export const change = (before, after) => `${figure(before)} → ${figure(after)}`;
export const percent = value => value === null || value === undefined ? '–' : `${Math.round(value * 100)} %`;
/* A number with its noun, and with a verb that is given in the plural: "1 move waits". */
export const plural = (count, noun, verb) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}${verb ? ` ${verb}${count === 1 ? 's' : ''}` : ''}`;

/* Memory, always in GiB, so that figures of a column can be compared. */
export function memory(mebibytes) {
  const size = mebibytes / 1024;
  return `${size.toLocaleString('en', {minimumFractionDigits: size < 10 ? 1 : 0, maximumFractionDigits: size < 0.1 ? 2 : size < 10 ? 1 : 0})} GiB`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 5400) return `${Math.round(whole / 60)} min`;
  const hours = Math.floor(whole / 3600);
  return hours < 48 ? `${hours} h ${Math.round(whole % 3600 / 60)} min` : `${Math.round(whole / 86400)} days`;
}

/* An expected duration, in steps so coarse that it does not read like a countdown. */
export function roughly(seconds) {
  if (seconds < 60) return 'about a minute';
  if (seconds < 600) return `about ${Math.ceil(seconds / 60)} min`;
  if (seconds < 5400) return `about ${Math.ceil(seconds / 600) * 10} min`;
  return `about ${Math.ceil(seconds / 3600)} h`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = number => String(number).padStart(2, '0');
export const clock = date => `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} UTC`;
export const day = date => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
export const moment = date => `${day(date)}, ${clock(date)}`;

/* A time in UTC as people read it: today's without the date. */
export function when(text) {
  if (!text) return '–';
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  return day(date) === day(new Date()) ? clock(date) : moment(date);
}
export const ago = text => text ? `${duration((Date.now() - new Date(text)) / 1000)} ago` : 'never';
