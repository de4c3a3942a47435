import { element } from './dom.js';
import { timeOfDay } from './time.js';

const KEPT = 200;

/** The events, the latest first. */
export class Log {
  #place;

  constructor(place) {
    this.#place = place;
  }

  clear() {
    this.#place.replaceChildren();
  }

  add({ at, kind, service, text }, isNamed) {
    const time = element('time', { datetime: new Date(at).toISOString() }, timeOfDay(at));
    const tag = isNamed ? [element('span', { class: 'tag' }, service ?? 'default'), ' '] : [];
    this.#place.prepend(element('li', { 'data-kind': kind }, time, element('span', {}, ...tag, text)));
    if (this.#place.childElementCount > KEPT) this.#place.lastElementChild.remove();
  }
}
