// Finds Chromium for the tests of pages: playwright-core contains no browser.
import { fileURLToPath } from 'node:url';
import { ensureProgram, onPath } from './ensure-program.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const PACKAGES = {
  'apt-get': ['chromium'],
  apk: ['chromium'],
  dnf: ['chromium'],
  brew: ['--cask', 'chromium'],
};

/** Path of the browser to start: `CHROMIUM` if set, else a browser in PATH; `undefined` if there is none. */
export function findChromium() {
  return process.env.CHROMIUM || NAMES.map(onPath).find(Boolean);
}

/**
 * Like {@link findChromium}, but installs a browser if that needs no password. Otherwise rejects with the command to
 * run.
 */
export function ensureChromium() {
  return ensureProgram(
    'Chromium',
    findChromium,
    PACKAGES,
    'https://www.chromium.org/getting-involved/download-chromium',
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await ensureChromium();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
