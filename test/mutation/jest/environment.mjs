// Reports to the process that started jest: which spec begins, the first test that fails, and, on request, the ranges
// of the library that V8 has executed.
import { writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector/promises';
import { join, relative, sep } from 'node:path';
import { TestEnvironment } from 'jest-environment-node';
import { root } from '../../../scripts/run.mjs';

const folder = process.env.COVERAGE;
const library = join(root, 'lib') + sep;

export default class Environment extends TestEnvironment {
  #spec;
  #session;
  #failure;
  #longest = 0;

  constructor(config, context) {
    super(config, context);
    this.#spec = relative(root, context.testPath).split(sep).join('/');
  }

  async setup() {
    await super.setup();
    process.send?.({ begins: this.#spec });
    if (!folder) return;
    this.#session = new Session();
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** After the first failure the other tests of the file are skipped. */
  handleTestEvent({ name, test, hook }) {
    if (name === 'test_start' && this.#failure) test.mode = 'skip';
    if (name === 'hook_failure') this.#fail(`${hook.type} of ${titleOf(hook.parent)}`);
    if (name !== 'test_done') return;
    this.#longest = Math.max(this.#longest, test.duration ?? 0);
    if (test.errors.length > 0) this.#fail(titleOf(test));
  }

  #fail(title) {
    if (this.#failure) return;
    this.#failure = title;
    process.send?.({ fails: this.#spec, title });
  }

  async teardown() {
    if (folder) await this.#writeCoverage();
    await super.teardown();
  }

  async #writeCoverage() {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    await this.#session.post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
    const scripts = result
      .map(({ url, functions }) => ({ file: url.replace(/^file:\/\//, ''), functions }))
      .filter(({ file }) => file.startsWith(library))
      .map(({ file, functions }) => ({
        file: relative(root, file).split(sep).join('/'),
        ranges: functions.flatMap(({ ranges }) => ranges.map((one) => [one.startOffset, one.endOffset, one.count])),
      }));
    const text = JSON.stringify({ spec: this.#spec, longest: this.#longest, scripts });
    await writeFile(join(folder, `${this.#spec.replaceAll('/', '+')}.raw`), text);
  }
}

function titleOf({ name, parent }) {
  return parent && parent.name !== 'ROOT_DESCRIBE_BLOCK' ? `${titleOf(parent)} ${name}` : name;
}
