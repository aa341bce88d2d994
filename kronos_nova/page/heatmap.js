/* All hosts of an aggregate, one cell each, on one canvas, so that a thousand are drawn as fast as ten. */

import { el, percent, put } from './elements.js';

export const HOT = 0.9;
const STEPS = [0.15, 0.3, 0.45, 0.6, 0.75, HOT];
const SMALLEST = 9, LARGEST = 46, HIGHEST = 230;

/* The shade of a load: 0 to 5, and 6 for a host that is nearly full. */
export const shade = value => { const n = STEPS.findIndex(step => value <= step); return n < 0 ? 6 : n; };

export class HeatMap {
  /* open: called with the name of a host that is chosen by a click or by Enter; null where hosts cannot be chosen */
  constructor(label, open = null) {
    this.label = label;
    this.open = open;
    this.hosts = [];
    this.at = -1;
    this.canvas = el('canvas', {role: 'img', tabindex: 0, 'aria-label': label});
    this.caption = el('div', {class: 'caption', role: 'status'});
    this.node = el('div', {class: 'map'}, this.canvas, this.caption, legend());
    this.canvas.addEventListener('pointermove', event => this.point(this.under(event)));
    this.canvas.addEventListener('pointerleave', () => this.point(-1));
    if (open) this.canvas.addEventListener('click', event => this.choose(this.under(event)));
    this.canvas.addEventListener('keydown', event => this.walk(event));
    this.canvas.addEventListener('focus', () => { if (this.at < 0 && this.hosts.length) this.point(0); });
    this.canvas.addEventListener('blur', () => this.point(-1));
    new ResizeObserver(() => this.draw()).observe(this.node);
    document.addEventListener('themechange', () => this.draw());
  }

  /* hosts: [{name, value, state, mark, text}], in the order in which they are drawn */
  show(hosts, label) {
    this.hosts = hosts;
    this.canvas.setAttribute('aria-label', label ?? this.label);
    this.draw();
  }

  measure() {
    const wide = Math.max(160, this.node.clientWidth), count = Math.max(1, this.hosts.length);
    let size = Math.min(LARGEST, Math.floor(Math.sqrt(wide * HIGHEST / count)));
    while (size > SMALLEST && Math.ceil(count / Math.floor(wide / size)) * size > HIGHEST) size--;
    this.size = Math.max(SMALLEST, size);
    this.across = Math.max(1, Math.floor(wide / this.size));
    return Math.ceil(count / this.across) * this.size;
  }

  draw() {
    if (!this.node.isConnected || !this.node.clientWidth) return;
    const high = this.measure(), wide = this.across * this.size, sharp = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(wide * sharp) || this.canvas.height !== Math.round(high * sharp)) {
      [this.canvas.width, this.canvas.height] = [Math.round(wide * sharp), Math.round(high * sharp)];
      this.canvas.style.width = `${wide}px`;
      this.canvas.style.height = `${high}px`;
    }
    const pen = this.canvas.getContext('2d'), style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name);
    const shades = [0, 1, 2, 3, 4, 5, 6].map(n => [colour(`--load-${n}`), colour(`--on-load-${n}`)]);
    const [empty, ink, line] = [colour('--track'), colour('--muted'), colour('--ink')];
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, wide, high);
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.font = `${Math.min(12, this.size / 2.6)}px system-ui, "DejaVu Sans", sans-serif`;
    this.hosts.forEach((host, n) => this.cell(pen, host, n, {shades, empty, ink, line}));
  }

  cell(pen, host, n, {shades, empty, ink, line}) {
    const [x, y, size] = [n % this.across * this.size, Math.floor(n / this.across) * this.size, this.size - (this.size > 6 ? 1 : 0)];
    const known = host.value !== null && host.value !== undefined;
    const [paint, over] = known ? shades[shade(host.value)] : [empty, ink];
    pen.fillStyle = paint;
    pen.fillRect(x, y, size, size);
    if (this.size >= 26) {
      pen.fillStyle = over;
      pen.fillText(known ? `${Math.round(host.value * 100)}` : '–', x + size / 2, y + size / 2);
    }
    pen.lineWidth = 1.5;
    pen.strokeStyle = over;
    if (host.state !== 'up') {
      pen.beginPath();
      pen.moveTo(x, y + size);
      pen.lineTo(x + size, y);
      pen.stroke();
    }
    if (host.mark) pen.strokeRect(x + 2, y + 2, size - 4, size - 4);
    if (n === this.at) {
      pen.strokeStyle = line;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, size - 2, size - 2);
    }
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.size), row = Math.floor((event.clientY - box.top) / this.size);
    const n = row * this.across + column;
    return column >= 0 && column < this.across && n >= 0 && n < this.hosts.length ? n : -1;
  }

  point(n) {
    if (n === this.at) return;
    this.at = n;
    const host = this.hosts[n];
    put(this.caption, host ? `${host.name}: ${host.text ?? percent(host.value)}` : '');
    this.draw();
  }

  choose(n) {
    if (this.open && this.hosts[n]) this.open(this.hosts[n].name);
  }

  walk(event) {
    if (event.key === 'Enter') this.choose(this.at);
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.across, ArrowUp: -this.across}[event.key];
    const last = this.hosts.length - 1;
    const to = step !== undefined ? this.at + step : {Home: 0, End: last}[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(last, to)));
  }
}

function legend() {
  const marks = ['0', ...STEPS.map(step => `${Math.round(step * 100)}`)];
  return el('div', {class: 'legend'},
    marks.map((from, n) => el('span', {}, el('b', {class: `load-${n}`}), n === 6 ? `over ${from} %` : `to ${marks[n + 1]} %`)),
    el('span', {}, el('b', {class: 'struck'}), 'not in service'), el('span', {}, el('b', {class: 'framed'}), 'being drained'));
}
