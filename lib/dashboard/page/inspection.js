import { element, write } from './dom.js';
import { inspect } from './server.js';
import { dateAndTime, duration, now, timeOfDay } from './time.js';

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
      void this.#ask(form.elements.service.value || null, form.elements.resource.value);
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

  pick(service, resource) {
    this.#form.elements.service.value = service ?? '';
    this.#form.elements.resource.value = resource;
    this.#form.elements.resource.focus();
    void this.#ask(service, resource);
  }

  tick() {
    if (!this.#remaining) return;
    const { cell, until } = this.#remaining;
    write(cell, until <= now() ? 'over: inspect it again' : duration(until - now()));
  }

  async #ask(service, resource) {
    const asked = ++this.#shown;
    try {
      const found = await inspect(service, resource);
      if (asked === this.#shown) this.#show(service, found);
    } catch (error) {
      if (asked === this.#shown) this.#place.replaceChildren(element('p', { class: 'problem' }, error.message));
    }
  }

  #show(service, found) {
    const { resource, state, remaining, holder, sharedBy, waiting, at, masters, ticket, revoked } = found;
    this.#remaining = undefined;
    const word = revoked ? 'released by force' : WORDS[state];
    const badge = element('p', { class: 'badge', 'data-lock': revoked ? 'revoked' : state }, word);
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
    if (sharedBy) add('shared by', `${sharedBy} ${sharedBy === 1 ? 'holder' : 'holders'}`);
    if (state === 'held') {
      const cell = add(revoked ? 'free in at most' : 'free, unless it is extended, in', 'it never expires');
      if (remaining !== undefined) this.#remaining = { cell, until: at + remaining };
    }
    if (waiting !== undefined) add('waiting', String(waiting));
    add('as of', timeOfDay(at));
    const replies = masters.map(({ master, kind, text }) =>
      element('li', { 'data-kind': kind }, element('span', { class: 'name' }, master), element('span', {}, text)),
    );
    const head = element('div', { class: 'title' }, element('h3', {}, resource), badge);
    const parts = [head, facts, element('ul', { class: 'replies', 'aria-label': 'Reply of each master' }, ...replies)];
    if (ticket) parts.push(this.#releaseButton(service, resource, ticket));
    this.#place.replaceChildren(...parts);
    this.tick();
  }

  #releaseButton(service, resource, ticket) {
    const button = element('button', { type: 'button', class: 'dangerous' }, 'Release by force…');
    button.addEventListener('click', () => {
      this.#dialog.open(service, resource, ticket, () => {
        this.#form.elements.resource.focus();
        void this.#ask(service, resource);
      });
    });
    return button;
  }
}
