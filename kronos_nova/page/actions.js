/* Actions of operators. Each asks first, states its effect, and reports its result. */

import { el, memory, plural, duration, table } from './elements.js';
import { ask, tell } from './dialogs.js';
import { segment } from './client.js';

const LEVELS = ['off', 'observe', 'approve', 'auto'];
const UNMOVABLE = ['leave', 'cold', 'stop'];
const EVERY = '*';
const REASON = {name: 'reason', label: 'Reason (others read it)'};
const of = aggregate => aggregate === EVERY ? 'all aggregates' : aggregate;

export class Actions {
  /* changed: called after an action */
  constructor(client, changed) {
    this.client = client;
    this.changed = changed;
    this.permitted = new Set();
  }

  /* Actions that the role does not permit are not offered. */
  may(name) {
    return this.permitted.has(name);
  }

  async run(method, path, body, done) {
    try {
      const answer = await this.client.send(method, path, body);
      tell(typeof done === 'function' ? done(answer) : done);
      await this.changed();
      return answer;
    } catch (error) {
      tell(error.message);
      return undefined;
    }
  }

  async approve(plan, moves, skip) {
    const chosen = moves.filter(move => !skip.includes(move.order));
    const size = chosen.reduce((sum, move) => sum + move.memory_mb, 0);
    const given = await ask({title: `Approve the plan for ${plan.aggregate}?`, confirm: `Approve ${plural(chosen.length, 'move')}`, text: [
      `${plural(chosen.length, 'server')} will be migrated live, ${memory(size)} of memory.`,
      ...(skip.length ? [`Left out: ${plural(skip.length, 'move')}, and with them those that depend on them.`] : []),
      'Before it starts, the plan is compared with the cloud of that moment.']});
    if (given) await this.run('POST', `v1/plans/${segment(plan.uuid)}/approve`, {skip}, answer => `Approved: ${answer.chosen} of ${plural(answer.moves, 'move')}.`);
  }

  async reject(plan) {
    const given = await ask({title: `Reject the plan for ${plan.aggregate}?`, confirm: 'Reject', isDangerous: true, text: 'The plan is dropped. The next evaluation makes another one.'});
    if (given) await this.run('POST', `v1/plans/${plan.uuid}/reject`, null, 'The plan is rejected.');
  }

  async abort(move) {
    const given = await ask({title: `Abort the move of ${move.instance_name ?? move.instance_uuid}?`, confirm: 'Abort the move', isDangerous: true,
      text: `From ${move.source} to ${move.destination}. A running migration is cancelled, and the server stays on ${move.source}. Moves that depend on this one are given up.`});
    if (given) await this.run('POST', `v1/moves/${move.uuid}/abort`, null, 'Nova was asked to end the move.');
  }

  async pause(aggregate) {
    const given = await ask({title: `Pause ${of(aggregate)}?`, confirm: 'Pause', fields: [REASON], text: 'No move is started until an operator resumes. Moves in progress continue.'});
    if (given) await this.run('POST', 'v1/pause', {aggregate, ...given}, `${of(aggregate)}: paused.`);
  }

  async resume(aggregate) {
    const given = await ask({title: `Resume ${of(aggregate)}?`, confirm: 'Resume', fields: [REASON], text: 'Every pause and stop ends, also those of other operators. Moves may be started again.'});
    if (given) await this.run('POST', 'v1/resume', {aggregate, everyone: true, ...given}, `${of(aggregate)}: resumed.`);
  }

  async stop(aggregate) {
    const given = await ask({title: `Stop ${of(aggregate)}?`, confirm: 'Stop', isDangerous: true,
      fields: [{name: 'let_finish', label: 'let running migrations continue to their end', type: 'check'}, REASON],
      text: 'No move is started, waiting moves are given up, and running ones are aborted, until an operator resumes.'});
    if (given) await this.run('POST', 'v1/stop', {aggregate, ...given}, answer => `${of(aggregate)}: stopped; ${plural(answer.abandoned, 'move')} given up, ${answer.under_way} still in progress.`);
  }

  async level(aggregate) {
    const {ceiling} = await this.client.get('v1/automation').catch(error => {
      tell(error.message);
      return {ceiling: null};
    });
    if (ceiling === null) return;
    const given = await ask({title: `Level of ${aggregate.name}`, confirm: 'Set', fields: [
      {name: 'level', label: 'Level', type: 'select', options: LEVELS.slice(0, LEVELS.indexOf(ceiling) + 1), value: aggregate.level}, {name: 'repairs', label: `only for moves that repair violated rules (${aggregate.repairs} now)`, type: 'check'}, REASON],
    text: ['off: no evaluation. observe: plans are only shown. approve: plans wait for approval. auto: plans run.',
      ...(ceiling === 'auto' ? [] : [`nova.conf permits nothing above "${ceiling}".`])]});
    if (given) await this.run('PUT', `v1/aggregates/${segment(aggregate.name)}/automation`, given, `${aggregate.name}: level ${given.repairs ? 'of rule repairs ' : ''}${given.level}.`);
  }

  /* hosts: names that the form proposes */
  async drain(hosts = '') {
    const given = await ask({title: 'Drain hosts', confirm: 'Check', fields: [
      {name: 'hosts', label: 'Hosts, or a failure domain such as rack=r3, separated by spaces', required: true, value: hosts}, REASON,
      {name: 'unmovable', label: 'Running servers that Nova cannot migrate live: leave them, migrate them cold, or stop them until the host is released', type: 'select', options: UNMOVABLE, value: UNMOVABLE[0]},
      {name: 'with_stopped', label: 'also migrate stopped servers (cold)', type: 'check'}],
    text: 'Kronos first checks whether all servers fit elsewhere, which may take some seconds.'});
    if (!given) return;
    const words = given.hosts.split(/[\s,]+/).filter(Boolean), domain = words.filter(word => word.includes('=')).join(',');
    const wish = {...given, hosts: words.filter(word => !word.includes('=')), ...(domain ? {domain} : {})};
    try {
      await this.begin(wish, given.hosts, await this.client.send('POST', 'v1/drains', {...wish, check: true}));
    } catch (error) {
      tell(error.message);
    }
  }

  /* asked: the text typed for hosts */
  async begin(wish, asked, found) {
    const rows = found.checked.map(host => el('tr', {}, el('th', {scope: 'row'}, host.host), el('td', {class: 'num'}, `${host.leaving} of ${host.servers}`),
      el('td', {class: 'num'}, memory(host.memory_mb)), el('td', {}, Object.entries(host.destinations).map(([name, count]) => `${name} ${count}`).join(', '))));
    const lines = (what, said) => found.checked.flatMap(host => Object.entries(host[what]).map(([uuid, reason]) => el('li', {class: 'warning'}, el('b', {}, host.names[uuid] ?? ''), ' ', el('span', {class: 'uuid'}, uuid), ` ${said} ${host.host}: ${reason}`)));
    const stuck = [...lines('interrupted', 'is interrupted and migrated cold from'), ...lines('stopped', 'is stopped until the release of'), ...lines('blocked', 'stays on')];
    const given = await ask({title: `Drain ${asked}?`, confirm: 'Drain', isDangerous: true,
      fields: !found.refusal ? [] : [{name: 'force', label: 'drain although no server can leave, or no other host is left', type: 'check'}], text: [
      el('div', {class: 'scroll short'}, table('What leaves', [['Host'], ['Servers that leave', 'num'], ['Memory', 'num'], ['To']], el('tbody', {}, rows))),
      el('ul', {class: 'plainlist'}, stuck), found.refusal ?? '',
      `${found.expected_seconds === null ? 'The duration is not known' : `It takes about ${duration(found.expected_seconds)}`}. No new servers are placed on the hosts until they are released.`]});
    if (given) await this.run('POST', 'v1/drains', {...wish, ...given}, `${plural(found.checked.length, 'host')} to be drained.`);
  }

  async release(drain) {
    const given = await ask({title: `Release ${drain.host}?`, confirm: 'Release', text: 'A drain in progress ends, and the host takes new servers again.'});
    if (given) await this.run('POST', `v1/hosts/${segment(drain.host)}/release`, null, `${drain.host} is released.`);
  }

  async endQuarantine(server) {
    const given = await ask({title: `End the quarantine of ${server.instance_name ?? server.instance_uuid}?`, confirm: 'End it', text: 'It may be moved again.'});
    if (given) await this.run('DELETE', `v1/quarantine/${segment(server.instance_uuid)}`, null, 'The quarantine is ended.');
  }
}
