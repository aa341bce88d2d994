/* Server-sent events, read by fetch so that the token is in a header and not in the address. */

const AGAIN_MS = 2000, LATER_MS = 60000;
const FORBIDDEN = 403, TOO_MANY = 429;

export class Stream {
  /* onEvent: called with the type of every event; heard: called with whether the stream is connected */
  constructor(client, onEvent, heard) {
    this.client = client;
    this.onEvent = onEvent;
    this.heard = heard;
    this.last = null;
    this.stopper = new AbortController();
    this.listen();
  }

  end() {
    this.stopper.abort();
    clearTimeout(this.timer);
  }

  async listen() {
    let pause = AGAIN_MS;
    try {
      const answer = await this.client.ask('GET', 'v1/events', {signal: this.stopper.signal,
        headers: {Accept: 'text/event-stream', ...(this.last ? {'Last-Event-ID': this.last} : {})}});
      this.heard(true);
      await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch (error) {
      if ([FORBIDDEN, TOO_MANY].includes(error.status)) pause = LATER_MS;
    }
    if (this.stopper.signal.aborted) return;
    this.heard(false);
    this.timer = setTimeout(() => this.listen(), pause);
  }

  async read(reader) {
    let rest = '';
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines) this.line(line);
    }
  }

  line(line) {
    if (line.startsWith('id: ')) this.last = line.slice(4);
    else if (line.startsWith('event: ')) this.onEvent(line.slice(7));
  }
}
