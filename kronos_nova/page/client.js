/* Asks kronos-api, on this page's own origin and with the token in a header; the token is kept for this tab alone. */

const KEPT_AS = 'kronos-token';
const ANSWER_MS = 20000;
/* What changes something may read the whole cloud first; to give up on it does not undo it. */
const DONE_MS = 60000;
const PAGE = 1000;
const UNAUTHORIZED = 401;

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  /* Whether it may be otherwise in a while: nobody answers, or who does lacks something. */
  get isPassing() {
    return this.status === 0 || this.status >= 500;
  }
}

export class Client {
  constructor() {
    this.token = sessionStorage.getItem(KEPT_AS);
    /* Called once for a token that is not valid any more, with whether something was to be done with it. */
    this.refused = () => {};
  }

  keep(token) {
    this.token = token;
    if (token) sessionStorage.setItem(KEPT_AS, token);
    else sessionStorage.removeItem(KEPT_AS);
  }

  async ask(method, path, {body, signal, headers} = {}) {
    const token = this.token;
    let answer;
    try {
      answer = await fetch(`../${path}`, {
        method, credentials: 'omit', cache: 'no-store', redirect: 'error',
        signal: signal ?? AbortSignal.timeout(method === 'GET' ? ANSWER_MS : DONE_MS),
        headers: {Accept: 'application/json', ...(token ? {'X-Auth-Token': token} : {}), ...(body ? {'Content-Type': 'application/json'} : {}), ...headers},
        body: body ? JSON.stringify(body) : undefined});
    } catch {
      throw new ApiError(0, 'kronos-api does not answer.');
    }
    if (answer.ok) return answer;
    const detail = await answer.json().then(found => found.errors[0].detail, () => `It answered with ${answer.status}.`);
    // Another login may have come in between; it is not to suffer for this one.
    if (answer.status === UNAUTHORIZED && token && token === this.token) this.refused(method !== 'GET');
    throw new ApiError(answer.status, detail);
  }

  async get(path) {
    return (await this.ask('GET', path)).json();
  }

  async send(method, path, body) {
    const answer = await this.ask(method, path, {body});
    return answer.status === 204 ? null : answer.text().then(text => text ? JSON.parse(text) : null);
  }

  /* All pages of a list. */
  async all(path, name) {
    const found = [];
    let marker = null;
    do {
      const page = await this.get(`${path}&limit=${PAGE}${marker ? `&marker=${encodeURIComponent(marker)}` : ''}`);
      found.push(...page[name]);
      marker = page.next;
    } while (marker);
    return found;
  }
}

export const segment = encodeURIComponent;
