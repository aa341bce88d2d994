/* The names of the views; the one that is shown is marked. */

import { addressOf } from './address.js';
import { el } from './elements.js';

export const VIEWS = {overview: 'Overview', aggregates: 'Aggregate', plans: 'Plans', hosts: 'Hosts', servers: 'Servers', maintenance: 'Maintenance', room: 'Room', reports: 'Reports', settings: 'Settings'};

export class Navigation {
  constructor() {
    this.links = Object.entries(VIEWS).map(([view, title]) => el('a', {href: addressOf(view), 'data-view': view}, title));
    this.node = el('nav', {'aria-label': 'Views'}, el('ul', {}, this.links.map(link => el('li', {}, link))));
  }

  show(view) {
    for (const link of this.links) {
      if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }
}

const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/* A form that finds hosts and servers by a part of their names, and a server by its uuid. */
export function searchForm(go) {
  const field = el('input', {type: 'search', name: 'name', required: true, maxlength: 255, placeholder: 'Host or server', 'aria-label': 'Find a host or a server by its name'});
  const form = el('form', {id: 'search', role: 'search', class: 'pair'}, field, el('button', {type: 'submit'}, 'Find'));
  form.addEventListener('submit', event => {
    event.preventDefault();
    const name = field.value.trim();
    if (name) go(UUID.test(name) ? addressOf('servers', name) : addressOf('search', '', {name}));
  });
  return form;
}
