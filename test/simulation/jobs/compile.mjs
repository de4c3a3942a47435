// Compiles what a run of the jobs simulation needs, as ../compile.mjs does. The Nest module, the decorators and the services
// of lib/schedule and lib/nest are left out: the engine does not need them.
import { compile, LIBRARY } from '../compile.mjs';

const ENTRIES = ['lib/index.ts', 'lib/internal.ts', 'lib/errors.ts'];
const FOLDERS = [...ENTRIES, ...LIBRARY, 'lib/nest', 'lib/schedule', 'test/simulation'];
/** What the engine imports of the folders that know Nest. */
const ENGINE =
  /schedule\/(job|job-(execution|locks|policy)|ticker|cron-schedule)\.ts$|nest\/(lockable-method|takers)\.ts$/;

/** Lines of the entries that export other files of those folders. */
const APART = /^export [^;]*? from '\.\/(?:nest\/(?!lockable-method)|runtime\/)[^;]*;\n/gm;

/** `change` may replace the contents of a file. */
export function compileJobs(change = (_, text) => text) {
  return compile((file, text) => {
    if (ENTRIES.includes(file)) return text.replace(APART, '');
    const isApart = /^lib\/(nest|schedule)\//.test(file) && !ENGINE.test(file);
    return isApart ? '' : change(file, text);
  }, FOLDERS);
}
