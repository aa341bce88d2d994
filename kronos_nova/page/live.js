/* The page of a running Kronos: asks, shows, and asks again when something happened or a while has passed. */

import { byId, button, clock, el, put } from './elements.js';
import { Actions } from './actions.js';
import { AggregatePart } from './aggregate.js';
import { Client, segment } from './client.js';
import { tell } from './dialogs.js';
import { drainsList, quarantineList, switchesList, workersList } from './lists.js';
import { Fleet, Maintenance, Problems, severityBadge } from './fleet.js';
import { login, loginAgain } from './login.js';
import { Stream } from './stream.js';
import { startTheme } from './theme.js';

const BUSY_MS = 1000, IDLE_MS = 5000, FAILED_MS = 5000;
/* From one look to the next where something happened: less than the second that passes between two looks of the server,
   or what changes every second would now and then not be shown before it has changed again. */
const HAPPENED_MS = 500;
/* While events are heard of, looks without one are for what has none: health, processes, time. */
const HEARD_MS = 10000;
const WARN_BEFORE_MS = 5 * 60 * 1000;

const client = new Client();

class Page {
  constructor(access) {
    this.access = access;
    this.actions = new Actions(client, () => { this.restBefore = null; return this.refresh(); });
    this.actions.permitted = new Set(access.may);
    this.kept = {};
    this.fleet = new Fleet(name => this.choose(name));
    this.problems = new Problems();
    this.maintenance = new Maintenance();
    this.aggregate = new AggregatePart(client, this.actions);
    this.lists = {drains: drainsList(this.actions), quarantine: quarantineList(this.actions), switches: switchesList(), workers: workersList()};
    this.aggregate.node.hidden = true;
    byId('content').replaceChildren(this.problems.node, this.fleet.node, this.aggregate.node, this.maintenance.node, this.lists.drains.node,
      el('div', {class: 'columns'}, this.lists.quarantine.node, this.lists.workers.node), this.lists.switches.node);
    this.seen = () => { if (!document.hidden) this.refresh(); };
    this.drawHead();
  }

  /* access: of the token that is used from now on; whose it is and what it permits are as before */
  start(access) {
    this.access = access;
    this.isWarned = false;
    this.isOver = false;
    this.isHeard = false;
    this.stream = this.actions.may('events:listen') ? new Stream(client, () => this.poke(), isHeard => { this.isHeard = isHeard; }) : null;
    document.addEventListener('visibilitychange', this.seen);
    this.refresh();
  }

  /* Asks for nothing any more; what is shown stays. */
  halt() {
    this.isOver = true;
    this.stream?.end();
    [this.timer, this.pokeTimer].forEach(clearTimeout);
    this.isPoked = false;
    document.removeEventListener('visibilitychange', this.seen);
  }

  end() {
    this.halt();
    // Questions that this page asked are nobody else's to answer.
    document.querySelectorAll('dialog:not(:has(#login))').forEach(dialog => dialog.close());
    for (const id of ['global', 'whoami', 'severity', 'fresh']) byId(id).replaceChildren();
  }

  drawHead() {
    const {actions, access} = this, offered = (name, text, run, attributes) => actions.may(name) ? [button(text, run, attributes), ' '] : [];
    byId('global').replaceChildren(...offered('automation:pause', 'Pause all…', () => actions.pause('*'), {id: 'pause-all'}),
      ...offered('automation:resume', 'Resume all…', () => actions.resume('*'), {id: 'resume-all'}), ...offered('automation:stop', 'Stop all…', () => actions.stop('*'), {id: 'stop-all', class: 'danger'}));
    byId('whoami').replaceChildren(el('span', {class: 'muted'}, `${access.user}${access.project ? ` in ${access.project}` : access.is_system ? ', system' : ''} `),
      button('Log out', () => leave('')));
  }

  /* By the server's clock; this one may be wrong. */
  watchExpiry(now) {
    if (this.isWarned || !this.access.expires_at || new Date(this.access.expires_at) - now > WARN_BEFORE_MS) return;
    this.isWarned = true;
    tell('Your token expires in five minutes or less; what is shown stays, and you will be asked to log in again.');
  }

  choose(name) {
    this.chosen = name;
    history.replaceState(null, '', `#${encodeURIComponent(name)}`);
    return this.refresh();
  }

  /* Something happened: a look follows at once, or a while after the last. */
  poke() {
    if (this.isOver || document.hidden || this.isPoked) return;
    this.isPoked = true;
    this.pokeTimer = setTimeout(() => { this.isPoked = false; this.refresh(); }, Math.max(0, (this.lookedAt ?? 0) + HAPPENED_MS - Date.now()));
  }

  /* One look at a time; who asks while one is under way gets another after it. */
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
    const [status, {aggregates}, {drains}] = await Promise.all([client.get('v1/status'), client.get('v1/aggregates'), client.get('v1/drains')]);
    const chosen = aggregates.find(each => each.name === this.chosen) ?? aggregates.find(each => each.name === fromAddress()) ?? foremost(aggregates);
    // Nothing jumps away under somebody's hands: what is shown stays chosen.
    this.chosen = chosen?.name;
    if (chosen) await this.learn(chosen);
    await this.learnRest(status, aggregates);
    if (this.isOver) return;
    this.isBusy = drains.some(drain => ['draining', 'requested'].includes(drain.state)) || aggregates.some(each => each.plan && each.plan.state !== 'proposed');
    this.draw(status, aggregates, drains, chosen);
    this.at = new Date(status.at);
    this.drawFresh(null);
    this.watchExpiry(this.at);
    if (!this.isDrawn) performance.mark('kronos-drawn');
    this.isDrawn = true;
  }

  /* Of when it is what is shown, and what is in the way of something newer. */
  drawFresh(problem) {
    const time = this.at ? `as of ${clock(this.at)}` : '';
    put(byId('fresh'), problem ? `${[problem, time && `What is shown is ${time};`].filter(Boolean).join(' ')} asked again every few seconds.` : time);
    byId('fresh').className = problem ? 'bad' : 'muted';
  }

  draw(status, aggregates, drains, chosen) {
    byId('severity').replaceChildren(severityBadge(status.severity));
    this.problems.show(status.problems);
    this.maintenance.show(status.maintenance);
    this.fleet.show(aggregates, chosen?.name);
    this.aggregate.node.hidden = !chosen;
    if (chosen) this.aggregate.show(chosen, this.kept, drains);
    this.lists.drains.show(drains);
    this.lists.workers.show(status.workers);
    this.lists.quarantine.show(this.quarantined ?? []);
    this.lists.switches.show(this.switches ?? []);
  }

  /* What is large is asked for when it is another than before. */
  async learn(aggregate) {
    const {name, plan} = aggregate, path = `v1/aggregates/${segment(name)}`, {kept} = this;
    const isOther = kept.name !== name, jobs = [];
    const found = isOther ? {name, plan: null, moves: []} : {...kept};
    found.planKey = plan ? `${plan.uuid} ${plan.state}` : '';
    if (found.planKey !== kept.planKey || kept.evaluatedAt !== aggregate.evaluated_at) jobs.push(client.get(`v1/plans?aggregate=${segment(name)}&limit=8`).then(answer => { found.plans = answer.plans; }));
    if (isOther || kept.evaluatedAt !== aggregate.evaluated_at) {
      found.evaluatedAt = aggregate.evaluated_at;
      jobs.push(client.get(`${path}/evaluation`).then(answer => { found.evaluation = answer; }), client.get(`${path}/history?hours=24`).then(answer => { found.history = answer; }));
    }
    if (!plan) Object.assign(found, {plan: null, planState: null, moves: []});
    else {
      if (found.plan?.uuid !== plan.uuid || found.planState !== plan.state) jobs.push(client.get(`v1/plans/${plan.uuid}`).then(answer => { found.plan = answer; found.planState = plan.state; }));
      if (plan.state === 'executing') jobs.push(client.all(`v1/moves?plan=${plan.uuid}`, 'moves').then(answer => { found.moves = answer; }));
      else found.moves = [];
    }
    await Promise.all(jobs);
    this.kept = found;
  }

  async learnRest(status, aggregates) {
    const key = JSON.stringify([status.quarantined, aggregates.map(each => [each.level, each.set_by, each.paused])]);
    if (key === this.restBefore) return;
    const [quarantine, switches, automation] = await Promise.all([client.get('v1/quarantine'), client.get('v1/automation/history?limit=20'), client.get('v1/automation')]);
    [this.quarantined, this.switches, this.actions.ceiling, this.restBefore] = [quarantine.servers, switches.events, automation.ceiling, key];
  }
}

/* Where there is most to see. */
const foremost = aggregates => [...aggregates].sort((a, b) => Boolean(b.plan) - Boolean(a.plan) || (a.health ?? -1) - (b.health ?? -1))[0];
const fromAddress = () => decodeURIComponent(location.hash.slice(1));

let page = null;

const isSame = (one, other) => ['user', 'project', 'is_system', 'roles', 'may'].every(name => JSON.stringify(one[name]) === JSON.stringify(other[name]));

async function enter(token) {
  client.keep(token);
  const access = await client.get('v1/access').catch(error => {
    client.keep(null);
    throw error;
  });
  // Whoever comes back goes on where they were; for anybody else it is another page.
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
  // One question, and nothing more is asked with that token.
  page.halt();
  client.keep(null);
  loginAgain(client, `Your token is not valid any more. What is shown stays as it is until you log in again.${wasToChange ? ' What you asked for was not done.' : ''}`, enter, () => leave(''));
};

/* With the token of this tab, which is kept while nobody can say whether it is good. */
async function comeBack() {
  const {token} = client;
  for (;;) {
    try {
      await enter(token);
      return;
    } catch (error) {
      if (!error.isPassing) {
        leave(error.status === 401 ? 'Your token is not valid any more.' : error.message);
        return;
      }
      byId('content').replaceChildren(el('section', {class: 'entry', role: 'status'}, el('div', {class: 'bad'}, error.message), 'It is asked again every few seconds.'));
      client.keep(token);
      await new Promise(resolve => { setTimeout(resolve, FAILED_MS); });
    }
  }
}

startTheme();
if (client.token) comeBack();
else login(client, '', enter);
