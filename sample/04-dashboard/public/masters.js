import { CommandButton } from './control.js';
import { element, mark, write } from './dom.js';
import { now, seconds } from './time.js';

const PROCESS = { running: 'running', paused: 'stopped by SIGSTOP', ended: 'not running' };

/** One card for each master, with its state and its buttons. */
export class Masters {
  #cards = [];
  #place;

  constructor(place) {
    this.#place = place;
  }

  show(masters, at) {
    for (const master of masters) {
      const card = (this.#cards[master.number - 1] ??= this.#add(master.number));
      card.show(master, at);
    }
  }

  tick() {
    for (const card of this.#cards) card.tick();
  }

  #add(number) {
    const card = new MasterCard(number);
    this.#place.append(card.element);
    return card;
  }
}

class MasterCard {
  element;
  #address = element('p', { class: 'address' });
  #state = element('p', { class: 'badge' });
  #facts = element('p', { class: 'facts' });
  #meter = element('span', { class: 'meter' }, element('span'));
  #pause;
  #kill;
  #restart;
  #quarantine;

  constructor(number) {
    const name = `master ${number}`;
    [this.#pause, this.#kill, this.#restart] = Array.from(
      { length: 3 },
      () => new CommandButton(`masters/${number}`, name),
    );
    const buttons = [this.#pause, this.#kill, this.#restart].map((button) => button.element);
    this.element = element(
      'article',
      { class: 'master', 'aria-label': `Master ${number}` },
      element('div', { class: 'title' }, element('h2', {}, `Master ${number}`), this.#address, this.#state),
      this.#meter,
      this.#facts,
      element('div', { class: 'buttons' }, ...buttons),
    );
  }

  show({ master, state, reason, remaining, version, latency, pid, process }, at) {
    this.element.dataset.state = state;
    this.#state.dataset.state = state;
    write(this.#address, master);
    this.#quarantine = state === 'quarantined' ? this.#lasting(remaining, at) : undefined;
    const facts = [
      pid === undefined ? PROCESS[process] : `process ${pid} ${PROCESS[process]}`,
      version && state !== 'down' && `version ${version}`,
      state === 'voting' && latency !== undefined && `answers in ${latency.toFixed(1)} ms`,
      reason,
    ];
    write(this.#facts, facts.filter(Boolean).join(' · '));
    mark(this.#facts, 'title', reason);
    this.#pause.show(process === 'paused' ? 'resume' : 'pause', process !== 'ended');
    this.#kill.show('kill', process !== 'ended');
    this.#restart.show('restart', true);
    this.tick();
  }

  tick() {
    const { state } = this.element.dataset;
    if (!this.#quarantine) {
      write(this.#state, state);
      this.#meter.hidden = true;
      return;
    }
    const left = Math.max(0, this.#quarantine.until - now());
    write(this.#state, `${state} for ${seconds(left)}`);
    this.#meter.hidden = false;
    this.#meter.firstChild.style.width = `${(100 * left) / this.#quarantine.length}%`;
  }

  /** The first remaining time of a quarantine counts as its length. */
  #lasting(remaining, at) {
    return { until: at + remaining, length: Math.max(this.#quarantine?.length ?? 0, remaining) };
  }
}
