/* Links from one view to another, for the names of hosts, servers, plans and aggregates. */

import { addressOf } from './address.js';
import { el, moment } from './elements.js';

export const hostLink = name => el('a', {class: 'host', href: addressOf('hosts', name)}, name);
export const aggregateLink = name => el('a', {class: 'host', href: addressOf('aggregates', name)}, name);
export const planLink = (uuid, text) => el('a', {href: addressOf('plans', uuid)}, text);
export const serverLink = (name, uuid) => el('a', {class: 'name', href: addressOf('servers', uuid), title: uuid}, name ?? uuid);
export const routeLinks = (source, destination) => [hostLink(source), el('span', {class: 'arrow', role: 'img', 'aria-label': 'to'}, ' → '), hostLink(destination)];

/* A time with its date, for lists of the past. */
export const dated = text => text ? el('time', {datetime: text}, moment(new Date(text))) : '–';
