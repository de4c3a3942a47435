import { element, mark } from './dom.js';

const failure = document.getElementById('failure');
let hiding;

/**
 * A button that sends a command. It keeps the focus while it is disabled, so that a keyboard user is not sent back to
 * the beginning of the page.
 *
 * @param target path of the target, such as `masters/1`
 * @param name name of the target, for users who do not see the position of the button
 */
export class CommandButton {
  element = element('button', { type: 'button' });
  #target;
  #name;
  #command;
  #isPossible = false;
  #isBusy = false;

  constructor(target, name) {
    this.#target = target;
    this.#name = name;
    this.element.addEventListener('click', () => void this.#press());
  }

  show(command, isPossible) {
    if (command !== this.#command) {
      this.#command = command;
      this.element.textContent = command[0].toUpperCase() + command.slice(1);
      this.element.dataset.command = command;
      mark(this.element, 'aria-label', `${this.element.textContent} ${this.#name}`);
    }
    this.#isPossible = isPossible;
    this.#update();
  }

  async #press() {
    if (!this.#isPossible || this.#isBusy) return;
    this.#isBusy = true;
    this.#update();
    try {
      const response = await fetch(`${this.#target}/${this.#command}`, { method: 'POST' });
      if (!response.ok) complain((await response.json()).message);
    } catch (error) {
      complain(`The dashboard does not answer: ${error.message}`);
    } finally {
      this.#isBusy = false;
      this.#update();
    }
  }

  #update() {
    mark(this.element, 'aria-disabled', this.#isPossible && !this.#isBusy ? undefined : 'true');
  }
}

function complain(text) {
  failure.textContent = text;
  failure.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (failure.hidden = true), 8_000);
}
