/* Why a server is moved, or why it is not. */

import { duration, el, when } from './elements.js';
import { segment } from './client.js';
import { fieldsOf, valuesOf } from './dialogs.js';
import { why } from './parts.js';

export class Explain {
  constructor(client) {
    this.client = client;
    this.answer = el('div', {role: 'status'});
    const form = el('form', {class: 'tools', id: 'explain'}, fieldsOf([{name: 'server', label: 'Why was a server moved, or why does it stay? Name or uuid:', required: true}]),
      el('button', {type: 'submit'}, 'Explain'));
    form.addEventListener('submit', event => { event.preventDefault(); this.explain(valuesOf(form).server); });
    this.node = el('div', {}, form, this.answer);
  }

  async explain(server) {
    try {
      this.answer.replaceChildren(...this.said(await this.client.get(`v1/servers/${segment(server)}/explanation`)));
    } catch (error) {
      this.answer.replaceChildren(error.message);
    }
  }

  said(found) {
    const {planned, moves} = found;
    const facts = [['Server', `${found.instance_name ?? ''} ${found.instance_uuid}`],
      ['Planned', planned && [`from ${planned.source} to ${planned.destination}: `, why(planned.reason)]],
      ['Stays', found.stays_because && `${found.stays_because.replace('_', ' ')}: ${found.stays_means ?? ''} (aggregate ${found.stays_in})`],
      ['Quarantine', found.quarantined_because && `${found.quarantined_because}, ${found.quarantined_until ? `until ${when(found.quarantined_until)}` : 'until an operator ends it'}`],
      ['Cooling', found.cooling_seconds ? `for ${duration(found.cooling_seconds)} more` : null],
      ['Refused', found.refused_because && `${found.refused_because} (${found.refused_hosts.join(', ')})`],
      ['Moves', moves.length ? moves.map(move => this.move(move)) : null]];
    const known = facts.filter(([, value]) => value);
    return [el('dl', {class: 'facts'}, known.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...(known.length === 1 ? ['No plan, no evaluation and no move has it.'] : [])];
  }

  move(move) {
    const {next_best: other, plan_imbalance_before: before, plan_imbalance_after: after} = move;
    return el('div', {class: 'explained'}, `${when(move.requested_at ?? move.created_at)}: ${move.source} → ${move.destination}, ${move.state}${move.error ? `: ${move.error}` : ''}`,
      el('div', {class: 'muted'}, why(move.reason), before === null ? '' : `; its plan: combined imbalance ${before.toFixed(3)} → ${after === null ? 'not known' : after.toFixed(3)}`,
        other ? `; next best: ${other.instance_name ?? other.instance_uuid} to ${other.destination}` : ''));
  }
}
