/* Pauses and stops with their author, time and reason, above every view. */

import { badge, button, el, Rows } from './elements.js';
import { dated } from './links.js';

export class Stopped {
  constructor(actions) {
    this.actions = actions;
    const list = el('ul', {class: 'plainlist'});
    this.rows = new Rows(list, each => JSON.stringify(each), each => ({node: this.line(each), update() {}}));
    this.node = el('section', {id: 'stopped', 'aria-label': 'Stopped and paused'}, list);
  }

  line(pause) {
    const {actions} = this;
    return el('li', {class: 'warning'}, badge(pause.value === 'stop' ? 'stopped' : 'paused', 'warn'), ' ', el('b', {}, pause.aggregate === '*' ? 'all aggregates' : pause.aggregate),
      ` by ${pause.set_by} since `, dated(pause.set_at), pause.reason ? `: ${pause.reason} ` : ', without a reason ',
      actions.may('automation:resume') ? button('Resume…', () => actions.resume(pause.aggregate), {'aria-label': `Resume ${pause.aggregate === '*' ? 'all aggregates' : pause.aggregate}`}) : null);
  }

  show(pauses) {
    this.node.hidden = !pauses.length;
    this.rows.show(pauses);
  }
}
