/* Bars and curves: small drawings whose figures are also shown as text. */

import { el, svg, figure, percent, plural, moment, table } from './elements.js';

const part = value => `${(Math.max(0, Math.min(1, value)) * 100).toFixed(1)}%`;

/* A figure, its limit, and the figure after the plan; all of them of `full`. */
export function bar(value, after = null, limit = null, full = 1) {
  const parts = (each, kind) => [
    el('i', {class: kind, style: {width: part(Math.min(each, limit ?? each) / full)}}),
    limit === null || each <= limit + 1e-9 ? null : el('i', {class: `${kind} over`, style: {left: part(limit / full), width: part((each - limit) / full)}})];
  return el('span', {class: 'bar', 'aria-hidden': 'true'}, parts(value, 'value'), after === null ? null : parts(after, 'after'),
    limit === null ? null : el('i', {class: 'limit', style: {left: part(limit / full)}}));
}

export const meter = (done, label) => el('progress', {max: 100, value: done, 'aria-label': label});

const WIDE = 600;

function frame(high, label, ...shapes) {
  return svg('svg', {viewBox: `0 0 ${WIDE} ${high}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label, style: {height: `${high}px`}}, shapes);
}

/* Load of hosts from the fullest to the emptiest, before the plan as an area and after it as a line. Each is sorted
   separately, so that a thousand hosts make two clean lines. The flatter line is better balanced. */
export function curve(name, before, after, note) {
  const high = 84;
  const sorted = values => values.filter(value => value !== null && value !== undefined).sort((a, b) => b - a);
  const level = value => (high - Math.max(0, Math.min(1, value)) * high).toFixed(1);
  const steps = values => values.map((value, n) => `${n ? 'L' : 'M'}${(n / values.length * WIDE).toFixed(1)} ${level(value)}H${((n + 1) / values.length * WIDE).toFixed(1)}`).join('');
  const [first, then] = [sorted(before), sorted(after ?? [])];
  if (!first.length) return null;
  const range = values => `${percent(values[0])} to ${percent(values.at(-1))}`;
  return el('figure', {class: 'chart'},
    el('figcaption', {}, el('b', {}, name), ` ${plural(first.length, 'host')}, ${range(first)}${then.length ? `, after the plan ${range(then)}` : ''}`, note ?? null),
    el('div', {class: 'plot'},
      el('div', {class: 'scale', 'aria-hidden': 'true'}, el('span', {}, '100 %'), el('span', {}, '50 %'), el('span', {}, '0 %')),
      frame(high, `Load of ${name}, fullest host first: ${range(first)}`,
        svg('path', {class: 'grid', d: `M0 ${high / 2}H${WIDE}M0 .5H${WIDE}`}),
        svg('path', {class: 'area', d: `${steps(first)}V${high}H0z`}), svg('path', {class: 'line before', d: steps(first)}),
        then.length ? svg('path', {class: 'line after', d: steps(then)}) : null)));
}

/* Imbalance over time with its threshold; values above it are marked. */
export function course(name, points, threshold) {
  const high = 84, measured = points.filter(point => point.value !== null);
  if (!measured.length) return null;
  const [start, end] = [points[0].at.getTime(), points.at(-1).at.getTime()];
  const top = Math.max(threshold * 1.6, ...measured.map(point => point.value)) * 1.05 || 1;
  const x = point => end === start ? WIDE : (point.at.getTime() - start) / (end - start) * WIDE;
  const y = value => high - value / top * high;
  let line = '', open = false;
  for (const point of points) {
    if (point.value !== null) line += `${open ? 'L' : 'M'}${x(point).toFixed(1)} ${y(point.value).toFixed(1)}`;
    open = point.value !== null;
  }
  if (measured.length === 1) line += 'h-8';
  const last = measured.at(-1), limit = y(threshold).toFixed(1), over = last.value > threshold + 1e-9;
  const marks = `${figure(last.value)} now, threshold ${figure(threshold)}`;
  return el('figure', {class: 'chart'},
    el('figcaption', {}, el('b', {}, name), ' ', el('span', {class: over ? 'bad' : 'good'}, figure(last.value)), ` of at most ${figure(threshold)}`),
    el('div', {class: 'plot'},
      el('div', {class: 'scale', 'aria-hidden': 'true'}, el('span', {}, top.toFixed(2)), el('span', {}, (top / 2).toFixed(2)), el('span', {}, '0')),
      frame(high, `Imbalance of ${name} over time: ${marks}`,
        svg('rect', {class: 'excess', width: WIDE, height: limit}),
        svg('path', {class: 'line before', d: line}), svg('path', {class: 'line limit', d: `M0 ${limit}H${WIDE}`}))),
    el('div', {class: 'times', 'aria-hidden': 'true'}, el('span', {}, moment(points[0].at)), el('span', {}, moment(points.at(-1).at))));
}

/* The combined imbalance after each move. */
export function descent(values) {
  const high = 70, top = Math.max(...values, 0.001);
  const line = values.map((value, n) => `${n ? 'L' : 'M'}${(n / Math.max(1, values.length - 1) * WIDE).toFixed(1)} ${(high - value / top * (high - 6)).toFixed(1)}`).join('');
  return el('figure', {class: 'chart'},
    el('figcaption', {}, `Combined imbalance, move by move: ${figure(values[0])} → ${figure(values.at(-1))}`),
    frame(high, 'Combined imbalance after each move', svg('path', {class: 'area', d: `${line}L${WIDE} ${high}L0 ${high}z`}), svg('path', {class: 'line after', d: line})));
}

/* The latest points as figures, for readers who cannot see the drawing. */
export function courseTable(history) {
  const details = el('details', {class: 'figures'}, el('summary', {}, 'The same as a table'));
  details.addEventListener('toggle', () => {
    if (!details.open || details.children.length > 1) return;
    details.append(table('Imbalance over time, the newest first',
      [['At'], ['Outcome'], ...history.policies.map(name => [name, 'num'])],
      el('tbody', {}, history.points.slice(-50).reverse().map(point => el('tr', {}, el('td', {}, moment(new Date(point.at))), el('td', {}, point.outcome.replace('_', ' ')),
        point.imbalances.map(value => el('td', {class: 'num'}, figure(value))))))));
  });
  return details;
}

/* Figures as columns that start at 0, for instance one for each month. A figure that is not known has no column.
   series: [[name, kind]]; points: [[label, values in the order of the series]] */
export function columns(label, series, points) {
  const high = 120, top = Math.max(...points.flatMap(([, values]) => values.filter(value => value !== null)), 0) || 1;
  const wide = WIDE / Math.max(1, points.length), each = wide * 0.7 / series.length;
  const shapes = points.flatMap(([, values], n) => values.map((value, m) => value === null ? null
    : svg('rect', {class: `column ${series[m][1]}`, x: (n * wide + wide * 0.15 + m * each).toFixed(1), width: Math.max(1, each - 1).toFixed(1), y: (high - value / top * high).toFixed(1), height: (value / top * high).toFixed(1)})));
  return el('figure', {class: 'chart'},
    el('figcaption', {}, el('b', {}, label), ' ', series.map(([name, kind]) => el('span', {class: 'key'}, el('b', {class: `swatch ${kind}`}), `${name} `))),
    el('div', {class: 'plot'}, el('div', {class: 'scale', 'aria-hidden': 'true'}, el('span', {}, top.toLocaleString('en', {maximumFractionDigits: 1})), el('span', {}, '0')),
      frame(high, `${label}: ${points.map(([name, values]) => `${name} ${values.map((value, m) => `${series[m][0]} ${value === null ? 'not known' : value.toLocaleString('en', {maximumFractionDigits: 1})}`).join(', ')}`).join('; ')}`, shapes)),
    el('div', {class: 'times', 'aria-hidden': 'true'}, el('span', {}, points[0]?.[0] ?? ''), el('span', {}, points.at(-1)?.[0] ?? '')));
}
