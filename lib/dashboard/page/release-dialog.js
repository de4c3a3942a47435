import { write, writeOrHide } from './dom.js';
import { release } from './server.js';

/** Asks for the name of the resource before its lock is taken away. */
export class ReleaseDialog {
  #dialog;
  #confirm;
  #problem;
  #target;
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

  open(service, resource, ticket, done) {
    this.#target = { service, resource, ticket, done };
    write(this.#dialog.querySelector('#release-name'), resource);
    this.#confirm.value = '';
    writeOrHide(this.#problem, undefined);
    this.#dialog.showModal();
    this.#confirm.focus();
  }

  async #release() {
    if (this.#isBusy) return;
    const { service, resource, ticket, done } = this.#target;
    if (this.#confirm.value !== resource) {
      writeOrHide(this.#problem, 'This is not the name of the resource.');
      return;
    }
    this.#isBusy = true;
    try {
      const { released } = await release(service, resource, ticket, this.#confirm.value);
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
