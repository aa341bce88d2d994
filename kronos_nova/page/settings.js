/* Levels in force and their authors, former levels, and the permissions of the user. */

import { badge, button, el } from './elements.js';
import { aggregateLink, dated } from './links.js';
import { List, switchesList } from './lists.js';
import { View } from './view.js';

const levelsList = actions => new List('levels', 'Levels', 'No aggregate is in scope.', each => each.aggregate, [
  ['Aggregate', each => aggregateLink(each.aggregate), each => each.aggregate, {class: 'full', 'data-label': null}], ['Level', each => badge(each.level, 'plain')], ['Rule repairs', each => badge(each.repairs, 'plain')],
  ['Set by', each => each.set_by ?? 'nova.conf'], ['Since', each => each.set_at ? dated(each.set_at) : '–'], ['Reason', each => each.reason, null, {class: 'full'}],
  ['Stopped or paused', each => each.paused ?? 'no', null, {class: 'full'}],
  ['', each => actions.may('automation:set') ? button('Level…', () => actions.level({name: each.aggregate, level: each.level, repairs: each.repairs}), {'aria-label': `Level of ${each.aggregate}`}) : null, each => [each.aggregate, each.level, each.repairs]]]);

export class SettingsView extends View {
  constructor(page) {
    super(page, 'settings');
    [this.levels, this.switches] = [levelsList(page.actions), switchesList()];
    this.facts = el('dl', {class: 'facts'});
    this.node.append(this.levels.node, this.switches.node, el('section', {id: 'installation'}, el('h2', {}, 'This installation'), this.facts));
  }

  async learn() {
    const [automation, {events}] = await Promise.all([this.client.get('v1/automation'), this.client.get('v1/automation/history?limit=200')]);
    return {automation, events};
  }

  draw({automation, events}, status) {
    this.levels.show(automation.levels);
    this.switches.show(events);
    const facts = [['Cloud', status.cloud ?? 'no name: set [kronos_api] cloud_name'], ['Highest level that nova.conf permits', automation.ceiling], ['Control database', `revision ${status.database_revision}`],
      ['Messages', 'by the alerts of Prometheus: share/kronos/prometheus has the rules, and receivers for a chat and e-mail']];
    this.facts.replaceChildren(...facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
  }
}
