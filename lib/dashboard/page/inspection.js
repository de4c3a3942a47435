import { element, write } from './dom.js';
import { inspect } from './server.js';
import { dateAndTime, duration, now, timeOfDay } from './time.js';
import { titleOf } from './title.js';

const WORDS = { held: 'held', free: 'free', unknown: 'unknown' };

/** The state of one resource, when the user asks for it. */
export class Inspection {
  #form;
  #place;
  #dialog;
  #remaining;
  #shown = 0;

  constructor(form, place, dialog) {
    this.#form = form;
    this.#place = place;
    this.#dialog = dialog;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#ask(form.elements.service.value || null, { resource: form.elements.resource.value });
    });
  }

  /** Offers the lock services if there are several. */
  setServices(services) {
    const { service } = this.#form.elements;
    const names = services.map(({ name }) => name ?? '');
    if ([...service.options].map(({ value }) => value).join('\n') === names.join('\n')) return;
    service.replaceChildren(...names.map((name) => element('option', { value: name }, name || 'default')));
    for (const part of [service, ...service.labels]) part.hidden = names.length < 2;
  }

  /** @param target has a slot if it is a permit */
  pick(service, target) {
    this.#form.elements.service.value = service ?? '';
    this.#form.elements.resource.value = titleOf(target);
    this.#form.elements.resource.focus();
    void this.#ask(service, target);
  }

  tick() {
    if (!this.#remaining) return;
    const { cell, until } = this.#remaining;
    write(cell, until <= now() ? 'over: look it up again' : duration(until - now()));
  }

  async #ask(service, target) {
    const asked = ++this.#shown;
    try {
      const found = await inspect(service, target);
      if (asked === this.#shown) this.#show(service, found);
    } catch (error) {
      if (asked === this.#shown) this.#place.replaceChildren(element('p', { class: 'problem' }, error.message));
    }
  }

  #show(service, found) {
    const { resource, slot, state, remaining, holder, sharedBy, waiting, at, masters, permits, ticket, revoked, term } =
      found;
    this.#remaining = undefined;
    const isOfPermits = permits && state === 'free';
    const word = revoked ? 'released by force' : isOfPermits ? 'permits taken' : WORDS[state];
    const badge = element(
      'p',
      { class: 'badge', 'data-lock': revoked ? 'revoked' : isOfPermits ? 'held' : state },
      word,
    );
    const facts = element('dl');
    const add = (term, value) => {
      const cell = element('dd', {}, value);
      facts.append(element('div', {}, element('dt', {}, term), cell));
      return cell;
    };
    if (holder && !revoked) {
      add('holder', holder.instance);
      add('since', `${dateAndTime(holder.since)} (${duration(at - holder.since)})`);
    }
    if (term !== undefined) add('leads in term', String(term));
    if (sharedBy) add('shared by', `${sharedBy} ${sharedBy === 1 ? 'holder' : 'holders'}`);
    if (state === 'held') {
      const cell = add(revoked ? 'free in at most' : 'free, unless it is extended, in', 'it never expires');
      if (remaining !== undefined) this.#remaining = { cell, until: at + remaining };
    }
    if (waiting !== undefined) add(slot === undefined ? 'waiting' : 'waiting for any permit', String(waiting));
    add('as of', timeOfDay(at));
    const replies = masters.map(({ master, kind, text }) =>
      element('li', { 'data-kind': kind }, element('span', { class: 'name' }, master), element('span', {}, text)),
    );
    const head = element('div', { class: 'title' }, element('h3', {}, titleOf(found)), badge);
    const parts = [head, facts, element('ul', { class: 'replies', 'aria-label': 'Reply of each master' }, ...replies)];
    if (permits) parts.splice(1, 0, this.#permitList(service, found));
    if (ticket) parts.push(this.#releaseButton(service, { resource, slot }, ticket));
    this.#place.replaceChildren(...parts);
    this.tick();
  }

  /** Permits of a name do not exclude its lock, so they are shown beside it. */
  #permitList(service, { resource, permits }) {
    const { slots, waiting } = permits;
    const count = `${slots.length} ${slots.length === 1 ? 'permit' : 'permits'} taken, ${waiting} waiting for one`;
    const rows = slots.map(({ slot, holder }) => {
      const button = element('button', { type: 'button', class: 'link', title: 'Look up this permit' }, `#${slot}`);
      button.addEventListener('click', () => this.pick(service, { resource, slot }));
      const words = holder ? `${holder.instance} since ${dateAndTime(holder.since)}` : 'held';
      return element('li', { 'data-kind': 'held' }, button, element('span', {}, words));
    });
    return element(
      'div',
      { class: 'permits' },
      element('p', { class: 'facts' }, count),
      element('ul', { class: 'replies', 'aria-label': 'Permits that are taken' }, ...rows),
    );
  }

  #releaseButton(service, target, ticket) {
    const button = element('button', { type: 'button', class: 'dangerous' }, 'Release by force…');
    button.addEventListener('click', () => {
      this.#dialog.open(service, target, ticket, () => {
        this.#form.elements.resource.focus();
        void this.#ask(service, target);
      });
    });
    return button;
  }
}
