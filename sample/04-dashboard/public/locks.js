import { chip, element, mark, write } from './dom.js';
import { now, seconds } from './time.js';

/** A row for each resource: its holder, and the remaining time unless the lock is extended. */
export class Locks {
  #rows = new Map();
  #place;
  #ttl = 1;

  constructor(place) {
    this.#place = place;
  }

  show(locks, masters) {
    for (const lock of locks) {
      if (!this.#rows.has(lock.resource)) this.#rows.set(lock.resource, this.#add(lock.resource, masters.length));
      const row = this.#rows.get(lock.resource);
      row.lock = lock;
      this.#showWho(row);
      lock.keys.forEach((key, index) => this.#showKey(row.keys[index], key, masters[index]));
    }
    this.tick();
  }

  tick() {
    for (const { lock, meter, time } of this.#rows.values()) {
      const validUntil = lock?.holder?.validUntil;
      const left = validUntil === undefined ? undefined : Math.max(0, validUntil - now());
      this.#ttl = Math.max(this.#ttl, left ?? 0);
      meter.firstChild.style.width = `${(100 * (left ?? 0)) / this.#ttl}%`;
      mark(meter, 'data-low', left !== undefined && left < this.#ttl / 3 ? '' : undefined);
      write(time, left === undefined ? '–' : left === 0 ? 'expired' : seconds(left));
    }
  }

  #showWho({ lock: { holder, waiting }, who, token, line }) {
    const shown = holder?.instance ?? 'no instance';
    if (who.dataset.shown !== shown) {
      who.replaceChildren(holder ? chip(holder.instance) : shown);
      who.dataset.shown = shown;
    }
    write(token, holder?.token === undefined ? 'no token' : `token ${holder.token}`);
    const names = waiting.join();
    if (line.dataset.names === names) return;
    line.replaceChildren(...(waiting.length > 0 ? waiting.map(chip) : ['–']));
    line.dataset.names = names;
  }

  #showKey(dot, key, { number, state }) {
    const what =
      key === 'unknown' ? `does not say, it is ${state}` : key === 'held' ? 'has the key' : 'does not have it';
    mark(dot, 'data-key', key);
    mark(dot, 'aria-label', `master ${number}: ${what}`);
    mark(dot, 'title', `master ${number}: ${what}`);
  }

  #add(resource, masters) {
    const who = element('td', { class: 'who' });
    const token = element('span', { class: 'token' });
    const meter = element('span', { class: 'meter' }, element('span'));
    const time = element('span', { class: 'time' });
    const keys = Array.from({ length: masters }, (_, i) => element('span', { class: 'key', role: 'img' }, `${i + 1}`));
    const line = element('td', { class: 'waiting' });
    this.#place.append(
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, resource, token),
        who,
        element('td', { class: 'remaining' }, element('div', {}, meter, time)),
        element('td', { class: 'keys' }, ...keys),
        line,
      ),
    );
    return { who, token, meter, time, keys, line };
  }
}
