// Reports to the process that started jest which spec begins, and the first test that fails.
import { relative, sep } from 'node:path';
import { TestEnvironment } from 'jest-environment-node';
import { root } from '../../../scripts/run.mjs';

export default class Environment extends TestEnvironment {
  #spec;
  #failure;

  constructor(config, context) {
    super(config, context);
    this.#spec = relative(root, context.testPath).split(sep).join('/');
  }

  async setup() {
    await super.setup();
    process.send?.({ begins: this.#spec });
  }

  /** After the first failure the other tests of the file are skipped. */
  handleTestEvent({ name, test, hook }) {
    if (name === 'test_start' && this.#failure) test.mode = 'skip';
    if (name === 'hook_failure') this.#fail(`${hook.type} of ${titleOf(hook.parent)}`);
    if (name === 'test_done' && test.errors.length > 0) this.#fail(titleOf(test));
  }

  #fail(title) {
    if (this.#failure) return;
    this.#failure = title;
    process.send?.({ fails: this.#spec, title });
  }
}

function titleOf({ name, parent }) {
  return parent && parent.name !== 'ROOT_DESCRIBE_BLOCK' ? `${titleOf(parent)} ${name}` : name;
}
