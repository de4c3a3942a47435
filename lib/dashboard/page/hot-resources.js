import { element } from './dom.js';
import { duration } from './time.js';

/** The kinds of resources for which calls of this instance have waited longest. Without any, there is no section. */
export class HotResources {
  #panel;
  #body = element('tbody');
  #shown = '';

  constructor(panel, place) {
    this.#panel = panel;
    const head = [element('th', { scope: 'col' }, 'kind of resource'), element('th', { scope: 'col' }, 'waited')];
    place.append(element('table', {}, element('thead', {}, element('tr', {}, ...head)), this.#body));
  }

  show(services) {
    const isNamed = services.length > 1;
    const rows = services.flatMap(({ name, contention }) => contention.map((row) => ({ service: name, ...row })));
    rows.sort((one, other) => other.milliseconds.sum - one.milliseconds.sum);
    this.#panel.hidden = rows.length === 0;
    const text = JSON.stringify([isNamed, rows]);
    if (text !== this.#shown) this.#body.replaceChildren(...rows.map((row) => rowOf(row, isNamed)));
    this.#shown = text;
  }
}

function rowOf({ service, pattern, acquisitions, waited, milliseconds, holders, unnamed }, isNamed) {
  const { sum, max, p99 } = milliseconds;
  const counts = `${waited} ${waited === 1 ? 'call' : 'calls'} · longest ${duration(max)} · 99 % within ${duration(p99)}`;
  const refused = acquisitions - waited;
  const causes = holders.slice(0, 3).map(({ instance, milliseconds: taken }) => `${instance} ${duration(taken)}`);
  if (unnamed > 0) causes.push(`not named ${duration(unnamed)}`);
  const facts = [
    refused > 0 ? `${counts} · ${refused} refused at once` : counts,
    ...(causes.length > 0 ? [`holders: ${causes.join(', ')}`] : []),
  ];
  const tag = isNamed ? [element('span', { class: 'tag' }, service ?? 'default')] : [];
  const lines = facts.map((line) => element('p', { class: 'facts' }, line));
  const head = element('th', { scope: 'row' }, element('div', {}, element('code', {}, pattern), ...tag), ...lines);
  return element('tr', {}, head, element('td', { class: 'number' }, duration(sum)));
}
