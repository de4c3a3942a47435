import { CommandButton } from './control.js';
import { chip, element, write } from './dom.js';

const STATES = { running: 'running', paused: 'paused', ended: 'ended' };

/** The instances, each with a button that pauses it. A paused holder loses its locks. */
export class Instances {
  #rows = new Map();
  #place;

  constructor(place) {
    this.#place = place;
  }

  show(instances) {
    for (const { name, pid, process } of instances) {
      if (!this.#rows.has(name)) this.#rows.set(name, this.#add(name));
      const { text, button } = this.#rows.get(name);
      write(text, process === 'running' ? `process ${pid}` : STATES[process]);
      button.show(process === 'paused' ? 'resume' : 'pause', process !== 'ended');
    }
  }

  #add(name) {
    const text = element('span', { class: 'facts' });
    const button = new CommandButton(`instances/${name}`, `instance ${name}`);
    const group = { class: 'instance', role: 'group', 'aria-label': `Instance ${name}` };
    this.#place.append(element('div', group, chip(name), text, button.element));
    return { text, button };
  }
}
