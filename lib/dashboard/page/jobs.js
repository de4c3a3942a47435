import { element, keep, write, writeOrHide } from './dom.js';
import { dateAndTime, duration, now } from './time.js';

/** The scheduled jobs of the application. Without any, there is no section. */
export class Jobs {
  #panel;
  #place;
  #cards = new Map();
  #elements = new Map();

  constructor(panel, place) {
    this.#panel = panel;
    this.#place = place;
  }

  show(jobs, isNamed) {
    this.#panel.hidden = jobs.length === 0;
    const keys = jobs.map(({ service, name }) => JSON.stringify([service, name]));
    keep(this.#place, this.#elements, keys, (key) => {
      this.#cards.set(key, new JobCard(jobs[keys.indexOf(key)], isNamed));
      return this.#cards.get(key).element;
    });
    jobs.forEach((job, index) => this.#cards.get(keys[index]).show(job));
  }

  tick() {
    for (const key of this.#elements.keys()) this.#cards.get(key).tick();
  }
}

class JobCard {
  element;
  #badge = element('p', { class: 'badge' });
  #schedule = element('p', { class: 'facts' });
  #problem = element('p', { class: 'facts', hidden: '' });
  #runs = element('ol', { class: 'runs', 'aria-label': 'Last runs' });
  #skip = element('p', { class: 'facts', hidden: '' });
  #shown = '';
  #job;

  constructor({ name, service }, isNamed) {
    const tag = isNamed ? [element('span', { class: 'tag' }, service ?? 'default')] : [];
    const head = element('div', { class: 'title' }, element('h3', {}, name), ...tag, this.#badge);
    this.element = element(
      'article',
      { class: 'job', 'aria-label': `Job ${name}` },
      ...[head, this.#schedule, this.#problem, this.#runs, this.#skip],
    );
  }

  show(job) {
    this.#job = job;
    const { current, runs, lastSkip, isSettled, problem } = job;
    const all = current ? [current, ...runs] : runs;
    const outcome = all[0]?.outcome ?? 'none';
    this.#badge.dataset.run = outcome;
    write(this.#badge, problem ? 'not known' : outcome === 'none' ? 'no run yet' : outcome);
    writeOrHide(this.#problem, problem ?? (isSettled || all.length === 0 ? '' : 'A newer record may exist.'));
    const skipped = lastSkip && `This instance did not run ${dateAndTime(lastSkip.scheduledFor)}: ${lastSkip.reason}.`;
    writeOrHide(this.#skip, skipped);
    const text = JSON.stringify(all);
    if (text !== this.#shown) this.#runs.replaceChildren(...all.map(lineOf));
    this.#shown = text;
    this.#runs.hidden = all.length === 0;
    this.tick();
  }

  tick() {
    const { schedule, next } = this.#job;
    const until = next - now();
    const when = until > 0 ? `in ${duration(until)}` : 'now';
    write(this.#schedule, `${schedule} · next ${dateAndTime(next)}, ${when}`);
  }
}

function lineOf({ scheduledFor, outcome, taken, instance, attempt, error }) {
  const facts = [
    taken !== undefined && `took ${duration(taken)}`,
    `on ${instance}`,
    attempt > 1 && `attempt ${attempt}`,
  ];
  const parts = [
    element('span', { class: 'outcome', 'data-run': outcome }, outcome),
    element('time', { datetime: new Date(scheduledFor).toISOString() }, dateAndTime(scheduledFor)),
    element('span', { class: 'facts' }, facts.filter(Boolean).join(' · ')),
  ];
  if (error !== undefined) parts.push(element('span', { class: 'error' }, error));
  return element('li', {}, ...parts);
}
