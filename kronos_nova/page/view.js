/* The base class of views: its requests, and the node for their results. */

import { el } from './elements.js';
import { VIEWS } from './navigation.js';

export class View {
  /* page: {client, actions, go} */
  constructor({client, actions, go}, view) {
    Object.assign(this, {client, actions, go, view});
    this.heading = VIEWS[view];
    this.node = el('div', {class: 'view', 'data-view': view});
  }

  /* Requests the object of an address; throws where it does not exist. The second argument is a promise of the status. */
  learn() {
    return null;
  }

  /* Shows the result of the requests. */
  draw() {}

  /* Whether the content changes from second to second. */
  get isBusy() {
    return false;
  }
}
