/* Requests to kronos-api, on this page's own origin and with the token in a header. The token is kept in this tab only. */

const KEPT_AS = 'kronos-token';
const ANSWER_MS = 20000;
/* A request that changes something may read the whole cloud first. Giving up on it does not undo it. */
const DONE_MS = 60000;
const PAGE = 1000;
const UNAUTHORIZED = 401;
const BAD_REQUEST = 400, FORBIDDEN = 403, NOT_FOUND = 404, CONFLICT = 409;
/* Statuses of answers about the object of an address; other errors are of the service. */
export const OF_ADDRESSES = [BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT];

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  /* Whether the error may pass: the service does not answer, or another service that it needs does not. */
  get isPassing() {
    return this.status === 0 || this.status >= 500;
  }
}

export class Client {
  constructor() {
    this.token = sessionStorage.getItem(KEPT_AS);
    /* Called once for a token that is no longer valid, with whether the request was to change something. */
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
    const detail = await answer.json().then(found => found.errors[0].detail, () => `kronos-api answered with ${answer.status}.`);
    // A login since then has another token, which this answer says nothing about.
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

  /* All entries of a list, page by page. */
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
