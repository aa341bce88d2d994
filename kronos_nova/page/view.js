/* The base of views: what each asks for, and where it shows that. */

import { el } from './elements.js';
import { VIEWS } from './navigation.js';

export class View {
  /* page: {client, actions, go} */
  constructor({client, actions, go}, view) {
    Object.assign(this, {client, actions, go, view});
    this.heading = VIEWS[view];
    this.node = el('div', {class: 'view', 'data-view': view});
  }

  /* Asks for what an address shows; throws where it is not there. A second argument is a promise of the status. */
  learn() {
    return null;
  }

  /* Shows what was learnt. */
  draw() {}

  /* Whether what is shown changes from second to second. */
  get isBusy() {
    return false;
  }
}
