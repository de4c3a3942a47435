// Explores configurations in a thread of its own. Receives the place of each in the list of all, and answers what it found.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';

const load = (file) => import(pathToFileURL(join(workerData.folder, 'test/model', file)).href);
const [{ explore }, { sections }] = await Promise.all([load('checker.js'), load('configurations.js')]);
const all = sections.flatMap(({ holds, breaks }) => [...holds, ...breaks]);

parentPort.on('message', (index) => {
  const { model } = all[index];
  const began = performance.now();
  const { states, depth, bounded, violation } = explore(model());
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  parentPort.postMessage({ states, depth, bounded, isViolated: violation !== undefined, seconds });
});
