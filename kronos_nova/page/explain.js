/* Why a server is moved, or why it is not. */

import { duration, el, when } from './elements.js';
import { segment } from './client.js';
import { fieldsOf, valuesOf } from './dialogs.js';
import { WHY_NOT, why } from './parts.js';

export class Explain {
  constructor(client) {
    this.client = client;
    this.answer = el('div', {role: 'status'});
    const form = el('form', {class: 'tools', id: 'explain'}, fieldsOf([{name: 'server', label: 'Why is it so of one server? Its uuid:', required: true}]),
      el('button', {type: 'submit'}, 'Explain'));
    form.addEventListener('submit', event => { event.preventDefault(); this.explain(valuesOf(form).server); });
    this.node = el('div', {}, form, this.answer);
  }

  async explain(uuid) {
    try {
      this.answer.replaceChildren(...this.said(await this.client.get(`v1/servers/${segment(uuid)}/explanation`)));
    } catch (error) {
      this.answer.replaceChildren(error.message);
    }
  }

  said(found) {
    const {planned, moves} = found;
    const facts = [['Server', `${found.instance_name ?? ''} ${found.instance_uuid}`],
      ['Planned', planned && [`from ${planned.source} to ${planned.destination}: `, why(planned.reason)]],
      ['Stays', found.stays_because && `${found.stays_because.replace('_', ' ')}: ${WHY_NOT[found.stays_because] ?? ''} (aggregate ${found.stays_in})`],
      ['Quarantine', found.quarantined_because && `${found.quarantined_because}, ${found.quarantined_until ? `until ${when(found.quarantined_until)}` : 'until an operator ends it'}`],
      ['Cooling', found.cooling_seconds ? `for ${duration(found.cooling_seconds)} more` : null],
      ['Refused', found.refused_because && `${found.refused_because} (${found.refused_hosts.join(', ')})`],
      ['Moves', moves.length ? moves.map(move => el('div', {}, `${when(move.created_at)}: ${move.source} → ${move.destination}, ${move.state}${move.error ? `: ${move.error}` : ''}`)) : null]];
    const told = facts.filter(([, value]) => value);
    return [el('dl', {class: 'facts'}, told.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
      ...(told.length === 1 ? ['Nothing is known of it: no plan, no evaluation and no move has it.'] : [])];
  }
}
