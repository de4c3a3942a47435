// Finds Prometheus for the sample with metrics, whose rules and panels are loaded and queried. Prometheus is optional:
// without it, they are checked against the metrics of the sample only.
import { fileURLToPath } from 'node:url';
import { ensureProgram, onPath } from './ensure-program.mjs';

// The packages of Debian and Alpine contain promtool as well.
const PACKAGES = {
  'apt-get': ['prometheus'],
  apk: ['prometheus'],
  dnf: ['golang-github-prometheus'],
  brew: ['prometheus'],
};

/** Paths of the server and of its tool; `undefined` unless PATH contains both. */
export function findPrometheus() {
  const [prometheus, promtool] = ['prometheus', 'promtool'].map(onPath);
  return prometheus && promtool ? { prometheus, promtool } : undefined;
}

/**
 * Like {@link findPrometheus}, but installs Prometheus if it is missing and no password is needed. If that fails, logs
 * the command to run and returns `undefined`.
 */
export async function ensurePrometheus(log = console.log) {
  try {
    return await ensureProgram('Prometheus', findPrometheus, PACKAGES, 'https://prometheus.io/download');
  } catch (error) {
    log(error.message);
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensurePrometheus();
