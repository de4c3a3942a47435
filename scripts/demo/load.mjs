const BURST_EVERY = 200;
/** No further burst while this many requests wait, so that the load adapts to a slow machine. */
const MAX_WAITING = 24;
const REQUEST_TIMEOUT = 12_000;
const ITEM = 'lamp';

/** Customers that order the same item at the same moment, from all instances. */
export class Load {
  sold = 0;
  soldOut = 0;
  /** Messages of failed requests. */
  failures = [];
  #instances;
  #perInstance;
  #waiting = new Set();
  #timer;

  constructor(instances, perInstance) {
    this.#instances = instances;
    this.#perInstance = perInstance;
  }

  async fillStock(left) {
    const [{ url }] = this.#instances;
    const response = await fetch(`${url}/stock/${ITEM}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ left }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT),
    });
    if (!response.ok) throw new Error(`The stock could not be filled: ${await response.text()}`);
  }

  async stockLeft() {
    const [{ url }] = this.#instances;
    const response = await fetch(`${url}/stock/${ITEM}`, { signal: AbortSignal.timeout(REQUEST_TIMEOUT) });
    return (await response.json()).left;
  }

  start() {
    this.#timer = setInterval(() => this.#burst(), BURST_EVERY);
  }

  /** Ends the bursts, and waits for the requests in progress. */
  async stop() {
    clearInterval(this.#timer);
    await Promise.all(this.#waiting);
  }

  #burst() {
    if (this.#waiting.size > MAX_WAITING) return;
    for (const instance of this.#instances) {
      for (let i = 0; i < this.#perInstance; i++) {
        const request = this.#buy(instance).finally(() => this.#waiting.delete(request));
        this.#waiting.add(request);
      }
    }
  }

  async #buy({ name, url }) {
    try {
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT);
      const response = await fetch(`${url}/stock/${ITEM}/sales`, { method: 'POST', signal });
      const text = await response.text();
      if (response.status === 201) this.sold++;
      else if (response.status === 409) this.soldOut++;
      else this.failures.push(`instance ${name}: ${response.status} ${text}`);
    } catch (error) {
      this.failures.push(`instance ${name}: ${error.cause?.message ?? error.message}`);
    }
  }
}
