import { element, keep, write, writeOrHide } from './dom.js';
import { duration, now } from './time.js';

/** One section for each lock service: whether locks can be taken, and a card for each master. */
export class Services {
  #sections = new Map();
  #elements = new Map();
  #place;

  constructor(place) {
    this.#place = place;
  }

  show(services, at) {
    keep(
      this.#place,
      this.#elements,
      services.map(({ name }) => name),
      (name) => {
        this.#sections.set(name, new ServiceSection(name));
        return this.#sections.get(name).element;
      },
    );
    for (const service of services) this.#sections.get(service.name).show(service, at);
  }

  tick() {
    for (const name of this.#elements.keys()) this.#sections.get(name).tick();
  }
}

class ServiceSection {
  element;
  #pill = element('p', { class: 'pill', role: 'status' });
  #when = element('p', { class: 'when', hidden: '' });
  #reason = element('p', { class: 'reason' });
  #grid = element('div', { class: 'masters' });
  #cards = new Map();
  #elements = new Map();
  #opensAt;
  #verdict = '';

  constructor(name) {
    const title = name === null ? 'Masters' : `Masters of ${name}`;
    const head = element('div', { class: 'title' }, element('h2', {}, title), this.#pill, this.#when);
    this.element = element('section', { class: 'service', 'aria-label': title }, head, this.#reason, this.#grid);
  }

  show({ isOff, canVote, reason, opensIn, masters }, at) {
    this.#verdict = isOff ? 'Locking is off' : canVote ? 'Locks can be taken' : 'No lock can be taken';
    this.#opensAt = opensIn === undefined ? undefined : at + opensIn;
    this.#pill.dataset.state = isOff ? 'quarantined' : canVote ? 'voting' : 'down';
    write(this.#reason, reason);
    keep(
      this.#grid,
      this.#elements,
      masters.map(({ master }) => master),
      (master) => {
        this.#cards.set(master, new MasterCard(master));
        return this.#cards.get(master).element;
      },
    );
    for (const each of masters) this.#cards.get(each.master).show(each, at);
    this.tick();
  }

  tick() {
    write(this.#pill, this.#verdict);
    // Beside the pill, which a screen reader announces whenever it changes.
    writeOrHide(this.#when, this.#opensAt && `for ${duration(this.#opensAt - now())} at most`);
    for (const master of this.#elements.keys()) this.#cards.get(master).tick();
  }
}

class MasterCard {
  element;
  #badge = element('p', { class: 'badge' });
  #facts = element('p', { class: 'facts' });
  #reason = element('p', { class: 'reason' });
  #meter = element('span', { class: 'meter' }, element('span'));
  #state;
  #quarantine;

  constructor(name) {
    const head = element('div', { class: 'title' }, element('h3', {}, name), this.#badge);
    this.element = element(
      'article',
      { class: 'master', 'aria-label': `Master ${name}` },
      ...[head, this.#meter, this.#reason, this.#facts],
    );
  }

  show({ state, reason, remaining, version, latency }, at) {
    this.#state = state;
    this.element.dataset.state = state;
    this.#badge.dataset.state = state;
    this.#quarantine =
      remaining === undefined
        ? undefined
        : { until: at + remaining, length: Math.max(this.#quarantine?.length ?? 0, remaining) };
    writeOrHide(this.#reason, reason);
    const facts = [version && `version ${version}`, latency !== undefined && `answers in ${latency.toFixed(1)} ms`];
    writeOrHide(this.#facts, facts.filter(Boolean).join(' · '));
    this.tick();
  }

  tick() {
    const left = this.#quarantine && Math.max(0, this.#quarantine.until - now());
    write(this.#badge, left === undefined ? this.#state : `${this.#state} for ${duration(left)}`);
    this.#meter.hidden = left === undefined;
    if (left !== undefined) this.#meter.firstChild.style.width = `${(100 * left) / this.#quarantine.length}%`;
  }
}
