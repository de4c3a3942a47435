import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SAMPLE = new URL('../../sample/02-schedule/dist/', import.meta.url);
const NAMES = ['A', 'B', 'C'];
/** How long an instance may take to start, and to end, in milliseconds. */
const START_TIMEOUT = 15_000;
const END_TIMEOUT = 3_000;

/** Longer lines name each master once more. */
const LONGEST_LINE = 140;

/** An instance ends when its stdin ends. So no instance is left behind, however this process ends. */
const END_WITH_PARENT = 'data:text/javascript,process.stdin.on("end",()=>process.exit(1)).resume().unref()';

/**
 * Starts three instances of the sample and resolves with them when all of them listen. Each has a `name`, a
 * `url`, `stop()` and `kill()`.
 *
 * @param masters list of URLs: the instances are processes. List of masters in memory: the instances run in this
 * process.
 */
export async function startInstances({ masters, store, locks }, cleanUp) {
  const areProcesses = masters.every((master) => typeof master === 'string');
  const start = areProcesses ? startProcess : startHere;
  const starting = NAMES.map((name) => start({ name, masters, store, locks }, cleanUp));
  return Promise.all(starting);
}

async function startProcess({ name, masters, store, locks }, cleanUp) {
  const child = spawn(process.execPath, ['--import', END_WITH_PARENT, fileURLToPath(new URL('main.js', SAMPLE))], {
    env: {
      ...process.env,
      ...{ INSTANCE: name, PORT: '0', STORE: store, REDIS_URLS: masters.join(), LOCKS: locks ? 'on' : 'off' },
      NO_COLOR: '1',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('close', resolve);
  });
  let stopping = false;
  void ended.then(() => stopping || report(`instance ${name} has ended`));
  const end = async (signal) => {
    stopping = true;
    child.kill(signal);
    const force = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT);
    await ended;
    clearTimeout(force);
  };
  const [stop, kill] = ['SIGTERM', 'SIGKILL'].map((signal) => () => end(signal));
  cleanUp(stop);
  child.stdin.on('error', () => {});
  return { name, url: await addressIn(child, name), stop, kill, end: 'killed' };
}

/** Resolves with the address that the instance reports; prints what it logs about its masters. */
function addressIn(child, name) {
  return new Promise((resolve, reject) => {
    const output = [];
    const fail = (why) => reject(new Error(`Instance ${name} ${why}\n${output.join('\n')}`));
    const deadline = setTimeout(() => fail(`did not listen within ${START_TIMEOUT} ms`), START_TIMEOUT);
    child.once('error', (error) => fail(`could not be started: ${error.message}`));
    child.once('close', (code) => {
      clearTimeout(deadline);
      fail(`ended with ${code} before it listened`);
    });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        if (output.length < 100) output.push(line);
        const [, news] = /\b(?:WARN|ERROR)\b +(.*)/.exec(line) ?? [];
        if (news) report(`instance ${name}: ${news}`);
        const [, url] = /listens on (http:\S+)/.exec(line) ?? [];
        if (!url) return;
        clearTimeout(deadline);
        resolve(url);
      });
    }
  });
}

async function startHere({ name, masters, store, locks }, cleanUp) {
  const { start } = await import(new URL('start.js', SAMPLE).href);
  const { Logger } = await import('@nestjs/common');
  // Nest passes the context as the last argument; all instances share the logger.
  const say = (text, ...rest) => report(`an instance: [${rest.at(-1)}] ${text}`);
  Logger.overrideLogger({ log: () => {}, warn: say, error: say, fatal: say });
  const app = await start({
    instance: name,
    port: 0,
    store,
    locks: { masters, enabled: locks },
  });
  // Does what a signal does to an instance that is a process.
  const stop = () => app.close();
  cleanUp(stop);
  // An application cannot be killed without its process, so it hands its jobs on.
  return { name, url: await app.getUrl(), stop, kill: stop, end: 'closed' };
}

function report(news) {
  console.log(`        ${news.length > LONGEST_LINE ? `${news.slice(0, LONGEST_LINE - 3)}...` : news}`);
}
