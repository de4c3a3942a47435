import { write, writeOrHide } from './dom.js';
import { release } from './server.js';
import { titleOf } from './title.js';

/** Asks for the name of the resource before its lock is taken away. */
export class ReleaseDialog {
  #dialog;
  #confirm;
  #problem;
  #wanted;
  #isBusy = false;

  constructor(dialog) {
    this.#dialog = dialog;
    this.#confirm = dialog.querySelector('#confirm');
    this.#problem = dialog.querySelector('#release-problem');
    dialog.querySelector('#release-cancel').addEventListener('click', () => dialog.close());
    dialog.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#release();
    });
  }

  open(service, target, ticket, done) {
    this.#wanted = { service, target, ticket, done };
    write(this.#dialog.querySelector('#release-name'), titleOf(target));
    this.#confirm.value = '';
    writeOrHide(this.#problem, undefined);
    this.#dialog.showModal();
    this.#confirm.focus();
  }

  async #release() {
    if (this.#isBusy) return;
    const { service, target, ticket, done } = this.#wanted;
    if (this.#confirm.value !== titleOf(target)) {
      writeOrHide(this.#problem, 'This is not the name of the resource.');
      return;
    }
    this.#isBusy = true;
    try {
      const { released } = await release(service, target, ticket, this.#confirm.value);
      if (!released) throw new Error('Too few masters gave it up: its holder may still rely on it.');
      this.#dialog.close();
      done();
    } catch (error) {
      writeOrHide(this.#problem, error.message);
    } finally {
      this.#isBusy = false;
    }
  }
}
