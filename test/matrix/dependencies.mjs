// The packages that an application gets with the library, besides the peers that it has anyway.
import { deepEqual } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { outputOf } from './command.mjs';

const LIBRARY = 'nestjs-redlock';

/** Each package, the package that needs it, and why. All of them serve the command line, which alone loads them. */
const PACKAGES = [
  ['commander', LIBRARY, 'arguments and help of the command line'],
  ['cli-table3', LIBRARY, 'tables of the command line'],
  ['@colors/colors', 'cli-table3', 'optional: colours of borders, which are not used'],
  ['string-width', 'cli-table3', 'how wide a text is in a terminal'],
  ['emoji-regex', 'string-width', 'emoji take two columns'],
  ['is-fullwidth-code-point', 'string-width', 'so do full-width characters'],
  ['strip-ansi', 'string-width', 'colours take none'],
  ['ansi-regex', 'strip-ansi', 'what a colour looks like'],
];

/** One cell: no other package is installed. */
export function dependencyCell(folder) {
  return {
    ...{ table: 'dependencies', row: `these ${PACKAGES.length} and no other`, column: 'tree' },
    part: 'tree',
    run: async () => {
      const tree = JSON.parse(await outputOf('npm', ['ls', '--all', '--json', '--omit=dev'], { cwd: folder }));
      const manifest = JSON.parse(await readFile(join(folder, 'node_modules', LIBRARY, 'package.json'), 'utf8'));
      const { dependencies } = tree.dependencies[LIBRARY];
      const own = Object.keys(manifest.dependencies).map((name) => [name, dependencies[name]]);
      const found = new Map();
      collect(LIBRARY, Object.fromEntries(own), found);
      deepEqual(found, new Map(PACKAGES));
    },
  };
}

/** The packages as a Markdown list. */
export function listOfDependencies() {
  return PACKAGES.map(([name, , reason]) => `- \`${name}\`: ${reason}`).join('\n');
}

/** npm lists the dependencies of a package at each place, so a package may occur more than once. */
function collect(parent, dependencies, found) {
  for (const [name, { dependencies: further = {} }] of Object.entries(dependencies)) {
    if (!found.has(name)) found.set(name, parent);
    collect(name, further, found);
  }
}
