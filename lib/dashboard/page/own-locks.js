import { element, keep, write } from './dom.js';
import { duration, now } from './time.js';
import { titleOf } from './title.js';

/** What this instance holds and waits for, the oldest first. */
export class OwnLocks {
  #held;
  #waiting;

  /** @param pick called with the service and the lock or permit that the user looks up */
  constructor(place, pick) {
    this.#held = new LockList('Held', 'for', 'This instance holds no lock.', pick);
    this.#waiting = new LockList('Waited for', 'for', 'No call of this instance waits for a lock.', pick);
    place.append(this.#held.element, this.#waiting.element);
  }

  show(services) {
    this.#held.show(services, 'held');
    this.#waiting.show(services, 'waiting');
  }

  tick() {
    this.#held.tick();
    this.#waiting.tick();
  }
}

class LockList {
  element;
  #title = element('h3');
  #body = element('tbody');
  #table;
  #none;
  #more = element('p', { class: 'facts', hidden: '' });
  #name;
  #pick;
  #rows = new Map();
  #since = new Map();

  constructor(name, column, none, pick) {
    this.#name = name;
    this.#pick = pick;
    this.#none = element('p', { class: 'facts' }, none);
    const head = [element('th', { scope: 'col' }, 'resource'), element('th', { scope: 'col' }, column)];
    this.#table = element('table', {}, element('thead', {}, element('tr', {}, ...head)), this.#body);
    this.element = element('div', { class: 'own' }, this.#title, this.#table, this.#none, this.#more);
  }

  show(services, kind) {
    const isNamed = services.length > 1;
    const locks = services.flatMap((service) => {
      return service[kind].locks.map((lock) => ({ service: service.name, ...lock }));
    });
    const count = services.reduce((sum, service) => sum + service[kind].count, 0);
    const seen = new Map();
    const keys = locks.map((lock) => {
      const key = JSON.stringify(lock);
      seen.set(key, (seen.get(key) ?? 0) + 1);
      return `${key}#${seen.get(key)}`;
    });
    const byKey = new Map(keys.map((key, index) => [key, locks[index]]));
    keep(this.#body, this.#rows, keys, (key) => this.#rowOf(key, byKey.get(key), isNamed));
    write(this.#title, `${this.#name}: ${count}`);
    this.#table.hidden = count === 0;
    this.#none.hidden = count > 0;
    this.#more.hidden = count === locks.length;
    write(this.#more, `and ${count - locks.length} more`);
    this.tick();
  }

  tick() {
    for (const key of this.#rows.keys()) {
      const { cell, since } = this.#since.get(key);
      write(cell, duration(now() - since));
    }
  }

  #rowOf(key, { service, resources, since, mode, slot, permits }, isNamed) {
    const names = resources.map((resource) => {
      const target = { resource, slot };
      const title = slot === undefined ? 'Look up this lock' : 'Look up this permit';
      const button = element('button', { type: 'button', class: 'link', title }, titleOf(target));
      button.addEventListener('click', () => this.#pick(service, target));
      return button;
    });
    const tag = isNamed ? [element('span', { class: 'tag' }, service ?? 'default')] : [];
    if (permits !== undefined)
      tag.push(element('span', { class: 'tag' }, permits === 1 ? 'a permit' : `one of ${permits} permits`));
    if (mode === 'shared') tag.push(element('span', { class: 'tag' }, 'shared'));
    const cell = element('td', { class: 'number' });
    this.#since.set(key, { cell, since });
    for (const old of this.#since.keys()) if (old !== key && !this.#rows.has(old)) this.#since.delete(old);
    return element('tr', {}, element('th', { scope: 'row' }, element('div', {}, ...names, ...tag)), cell);
  }
}
