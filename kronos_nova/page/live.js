/* The page of a running Kronos. It shows the view that its address names, and requests it again after each event and
   after some time. */

import { addressOf, parse } from './address.js';
import { byId, button, clock, el, put } from './elements.js';
import { Actions } from './actions.js';
import { AggregateView } from './aggregate.js';
import { Client, OF_ADDRESSES } from './client.js';
import { tell } from './dialogs.js';
import { severityBadge } from './fleet.js';
import { HostView } from './host.js';
import { login, loginAgain } from './login.js';
import { HostsView } from './machines.js';
import { MaintenanceView } from './maintenance.js';
import { Navigation, searchForm } from './navigation.js';
import { OverviewView } from './overview.js';
import { PlansView } from './plans.js';
import { ReportsView } from './reports.js';
import { RoomView } from './room.js';
import { SearchView } from './search.js';
import { ServerView } from './server.js';
import { ServersView } from './servers.js';
import { SettingsView } from './settings.js';
import { Stopped } from './stopped.js';
import { Stream } from './stream.js';
import { startTheme } from './theme.js';

const BUSY_MS = 1000, IDLE_MS = 5000, FAILED_MS = 5000;
/* Milliseconds between two requests after events. Less than the second between two readings of the server; otherwise a
   change might not be shown before the next one. */
const HAPPENED_MS = 500;
/* Milliseconds between two requests without an event, while events arrive: for health, processes and times. */
const HEARD_MS = 10000;
const WARN_BEFORE_MS = 5 * 60 * 1000;

/* {view: [class for the list, class for one object]} */
const SHOWN_BY = {overview: [OverviewView], aggregates: [AggregateView], plans: [PlansView], hosts: [HostsView, HostView], servers: [ServersView, ServerView],
  maintenance: [MaintenanceView], room: [RoomView], reports: [ReportsView], settings: [SettingsView], search: [SearchView]};

const client = new Client();
const go = address => { location.hash = address; };

class Page {
  constructor(access) {
    this.access = access;
    this.actions = new Actions(client, () => this.refresh());
    this.actions.permitted = new Set(access.may);
    this.views = new Map();
    this.stopped = new Stopped(this.actions);
    this.navigation = new Navigation();
    this.place = el('div');
    this.refused = el('section', {id: 'refused', role: 'status'});
    byId('content').replaceChildren(this.stopped.node, this.place);
    byId('views').replaceChildren(this.navigation.node, searchForm(go));
    this.seen = () => { if (!document.hidden) this.refresh(); };
    this.moved = () => { this.address = null; this.refresh(); };
    this.drawHead();
  }

  /* access: of the token that is used from now on, which has the same user and permissions as before */
  start(access) {
    this.access = access;
    this.isWarned = false;
    this.isOver = false;
    this.isHeard = false;
    this.stream = this.actions.may('events:listen') ? new Stream(client, () => this.poke(), isHeard => { this.isHeard = isHeard; }) : null;
    document.addEventListener('visibilitychange', this.seen);
    window.addEventListener('hashchange', this.moved);
    this.refresh();
  }

  /* Ends all requests; the content of the page stays. */
  halt() {
    this.isOver = true;
    this.stream?.end();
    [this.timer, this.pokeTimer].forEach(clearTimeout);
    this.isPoked = false;
    document.removeEventListener('visibilitychange', this.seen);
    window.removeEventListener('hashchange', this.moved);
  }

  end() {
    this.halt();
    // Another user must not answer the dialogs of this one.
    document.querySelectorAll('dialog:not(:has(#login))').forEach(dialog => dialog.close());
    for (const id of ['global', 'whoami', 'severity', 'fresh', 'cloud', 'views']) byId(id).replaceChildren();
    document.title = 'Kronos';
  }

  drawHead() {
    const {actions, access} = this, offered = (name, text, run, attributes) => actions.may(name) ? [button(text, run, attributes), ' '] : [];
    byId('global').replaceChildren(...offered('automation:pause', 'Pause all…', () => actions.pause('*'), {id: 'pause-all'}),
      ...offered('automation:resume', 'Resume all…', () => actions.resume('*'), {id: 'resume-all'}), ...offered('automation:stop', 'Stop all…', () => actions.stop('*'), {id: 'stop-all', class: 'danger'}));
    byId('whoami').replaceChildren(el('span', {class: 'muted'}, `${access.user}${access.project ? ` in ${access.project}` : access.is_system ? ', system' : ''} `),
      button('Log out', () => leave('')));
  }

  /* The time by the server's clock; the browser's may be wrong. */
  watchExpiry(now) {
    if (this.isWarned || !this.access.expires_at || new Date(this.access.expires_at) - now > WARN_BEFORE_MS) return;
    this.isWarned = true;
    tell('Your token expires in five minutes or less. You will then be asked to log in again, and the page stays.');
  }

  /* Something happened: a request follows at once, or some time after the last one. */
  poke() {
    if (this.isOver || document.hidden || this.isPoked) return;
    this.isPoked = true;
    this.pokeTimer = setTimeout(() => { this.isPoked = false; this.refresh(); }, Math.max(0, (this.lookedAt ?? 0) + HAPPENED_MS - Date.now()));
  }

  /* One request at a time; a caller during a request gets another one after it. */
  refresh() {
    this.wanted = true;
    this.looking ??= this.looks().finally(() => { this.looking = null; });
    return this.looking;
  }

  async looks() {
    clearTimeout(this.timer);
    let pause = IDLE_MS;
    while (this.wanted && !this.isOver) {
      this.wanted = false;
      this.lookedAt = Date.now();
      try {
        await this.look();
        pause = this.isHeard ? HEARD_MS : this.isBusy ? BUSY_MS : IDLE_MS;
      } catch (error) {
        if (this.isOver) return;
        this.drawFresh(error.message);
        pause = FAILED_MS;
      }
    }
    if (!document.hidden && !this.isOver) this.timer = setTimeout(() => this.refresh(), pause);
  }

  async look() {
    const address = this.address ??= parse(location.hash), view = this.viewOf(address);
    const asked = client.get('v1/status');
    const [status, found] = await Promise.all([asked, Promise.resolve(view.learn(address, asked)).catch(error => {
      if (!OF_ADDRESSES.includes(error.status)) throw error;
      return error;
    })]);
    // The address has changed meanwhile: a request for the new one follows.
    if (this.isOver || address !== this.address) return;
    this.show(view, address, found, status);
    this.isBusy = view.isBusy || status.drains.some(drain => ['draining', 'requested'].includes(drain.state));
    this.at = new Date(status.at);
    this.drawFresh(null);
    this.watchExpiry(this.at);
    if (!this.isDrawn) performance.mark('kronos-drawn');
    this.isDrawn = true;
  }

  /* Views are kept while others are shown, with their choices. */
  viewOf({view, name}) {
    const known = Object.hasOwn(SHOWN_BY, view) ? view : 'overview', [all, one = all] = SHOWN_BY[known], made = name ? one : all;
    if (!this.views.has(made)) this.views.set(made, new made({client, actions: this.actions, go}));
    return this.views.get(made);
  }

  show(view, address, found, status) {
    byId('severity').replaceChildren(severityBadge(status.severity));
    put(byId('cloud'), status.cloud ?? '');
    this.stopped.show(status.pauses);
    const isRefused = found instanceof Error;
    if (isRefused) put(this.refused, found.message);
    else view.draw(found, status, address);
    this.enter(isRefused ? this.refused : view.node, view, address);
  }

  /* Another view is announced to screen readers, and begins at its top. */
  enter(node, view, address) {
    if (this.place.firstChild !== node) this.place.replaceChildren(node);
    this.navigation.show(view.view);
    document.title = [address.name || view.heading, address.name ? view.heading : null, 'Kronos', byId('cloud').textContent].filter(Boolean).join(' · ');
    if (this.entered && address !== this.entered && (address.view !== this.entered.view || address.name !== this.entered.name)) {
      scrollTo(0, 0);
      byId('main').focus({preventScroll: true});
    }
    this.entered = address;
  }

  /* The time of the content, and the reason why there is no newer one. */
  drawFresh(problem) {
    const time = this.at ? `as of ${clock(this.at)}` : '';
    put(byId('fresh'), problem ? `${[problem, time && `What is shown is ${time};`].filter(Boolean).join(' ')} asked again every few seconds.` : time);
    byId('fresh').className = problem ? 'bad' : 'muted';
  }
}

let page = null;

const isSame = (one, other) => ['user', 'project', 'is_system', 'roles', 'may'].every(name => JSON.stringify(one[name]) === JSON.stringify(other[name]));

async function enter(token) {
  client.keep(token);
  const access = await client.get('v1/access').catch(error => {
    client.keep(null);
    throw error;
  });
  // The same user continues with the same page; another user gets a new one.
  if (!page || !isSame(page.access, access)) {
    page?.end();
    page = new Page(access);
  }
  page.start(access);
}

function leave(message) {
  page?.end();
  page = null;
  client.keep(null);
  login(client, message, enter);
}

client.refused = wasToChange => {
  if (!page || page.isOver) return;
  // One last request ends the token; no other is made with it.
  page.halt();
  client.keep(null);
  loginAgain(client, `Your token is no longer valid. The page does not change until you log in again.${wasToChange ? ' Your last action was not carried out.' : ''}`, enter, () => leave(''));
};

/* Begins with the token of this tab, which is kept while the service cannot check it. */
async function comeBack() {
  const {token} = client;
  for (;;) {
    try {
      await enter(token);
      return;
    } catch (error) {
      if (!error.isPassing) {
        leave(error.status === 401 ? 'Your token is no longer valid.' : error.message);
        return;
      }
      byId('content').replaceChildren(el('section', {class: 'entry', role: 'status'}, el('div', {class: 'bad'}, error.message), 'It is asked again every few seconds.'));
      client.keep(token);
      await new Promise(resolve => { setTimeout(resolve, FAILED_MS); });
    }
  }
}

if (!location.hash) history.replaceState(null, '', addressOf('overview'));
startTheme();
if (client.token) comeBack();
else login(client, '', enter);
