// Compiles what a run of the jobs simulation needs, as ../compile.mjs does. The Nest module, the decorators and the services
// of lib/schedule and lib/nest are left out: the engine does not need them.
import { compile } from '../compile.mjs';

const FOLDERS = ['lib/core', 'lib/memory', 'lib/redis', 'lib/nest', 'lib/schedule', 'test/simulation'];
/** What the engine imports of the folders that know Nest. */
const ENGINE = /schedule\/(job|job-(clock|execution|locks)|cron-schedule)\.ts$|nest\/lockable-method\.ts$/;

/** `change` may replace the contents of a file. */
export function compileJobs(change = (_, text) => text) {
  return compile((file, text) => {
    const isApart = /^lib\/(nest|schedule)\//.test(file) && !ENGINE.test(file);
    return isApart ? '' : change(file, text);
  }, FOLDERS);
}
