// The recipes of docs/testing.md, as they stand, under the test runners of applications that `nest new` generates.
import { deepEqual, doesNotMatch, equal } from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readMarkdown } from '../../scripts/docs/markdown.mjs';
import { root } from '../../scripts/run.mjs';
import { generate } from './application.mjs';
import { outcomeOf, pathWith } from './command.mjs';
import { RUNNERS, SCAFFOLDS } from './corners.mjs';

/** Where the recipes are written: `app.module.ts` is also a file of the application. */
const FOLDER = 'src/recipes';

/** How each runner is started and configured, and the specs that use the globals of another one. */
const COMMANDS = {
  Vitest: {
    args: () => ['node_modules/vitest/vitest.mjs', 'run', '--testTimeout', '30000', '--exclude', '**/*.jest.spec.ts'],
    foreign: '.jest.',
  },
  'jest, ESM': { args: jest('--experimental-vm-modules'), foreign: '.vitest.', config: ({ page }) => page.esm },
  'jest, CommonJS': { args: jest(), foreign: '.vitest.', config: ({ page }) => page.commonJs },
  // As generated, and with the one line that the page gives for imports that end in `.js`.
  'ts-jest': {
    args: jest(),
    foreign: '.vitest.',
    config: ({ page, generated }) => ({ ...generated, moduleNameMapper: page.commonJs.moduleNameMapper }),
  },
};

function jest(...flags) {
  return (config) => [
    ...flags,
    ...['node_modules/jest/bin/jest.js', '--config', config, '--runInBand', '--testTimeout', '30000'],
    ...['--testPathIgnorePatterns', '\\.vitest\\.spec\\.ts$', '/node_modules/'],
  ];
}

/** The cells of all test runners. Applications are generated and installed when the first of their cells runs. */
export function runnerCells({ tarball, node, version }) {
  const applications = new Map();
  const applicationOf = (scaffold) => {
    if (!applications.has(scaffold)) applications.set(scaffold, prepare(scaffold, tarball, node));
    return applications.get(scaffold);
  };
  return RUNNERS.map(({ runner, scaffold }) => ({
    ...{
      table: 'test runners',
      row: `${runner}, ${SCAFFOLDS[scaffold].title}`,
      column: `Node ${version}`,
      part: runner,
    },
    run: async () => runRecipes(await applicationOf(scaffold), runner, node),
  }));
}

async function prepare(scaffold, tarball, node) {
  const app = await generate(`runners-${scaffold}`, scaffold, node, [...SCAFFOLDS[scaffold].packages, tarball]);
  const { blocks } = await readMarkdown(join(root, 'docs/testing.md'));
  const recipes = blocks
    .filter(({ language, fileName }) => language === 'ts' && fileName !== undefined)
    .flatMap(forBoth);
  await mkdir(join(app, FOLDER), { recursive: true });
  for (const { fileName, text } of recipes) await writeFile(join(app, FOLDER, fileName), text);
  const [{ text }] = blocks.filter(({ language }) => language === 'json');
  const esm = JSON.parse(text).jest;
  // The changes that the page names.
  const commonJs = JSON.parse(JSON.stringify({ ...esm, extensionsToTreatAsEsm: undefined }).replace('es6', 'commonjs'));
  const specs = recipes.map(({ fileName }) => fileName).filter((each) => each.endsWith('.spec.ts'));
  const { jest: generated } = JSON.parse(await readFile(join(app, 'package.json'), 'utf8'));
  return { app, specs, page: { esm, commonJs }, generated };
}

/** With Vitest, `vi` has the functions of `jest`, as the page says. */
function forBoth({ fileName, text }) {
  const recipe = { fileName, text };
  if (!fileName.includes('.jest.')) return [recipe];
  const vitest = text.replace(/^import .*'@jest\/globals'.*\n/m, '').replaceAll(/\bjest\.(?=\w+\()/g, 'vi.');
  return [recipe, { fileName: fileName.replace('.jest.', '.vitest.'), text: vitest }];
}

async function runRecipes(application, runner, node) {
  const { app, specs } = application;
  const { args, foreign, config } = COMMANDS[runner];
  const name = runner.replace(/\W+/g, '-');
  const configFile = join(app, `jest.${name}.json`);
  if (config) await writeFile(configFile, JSON.stringify(config(application)));
  const report = join(app, `report.${name}.json`);
  const reporter = config ? ['--json'] : ['--reporter=json'];
  const command = [...args(configFile), ...reporter, '--outputFile', report];
  const { code, stdout, stderr } = await outcomeOf(node, command, { cwd: app, env: pathWith(node) });
  equal(code, 0, `${stdout}${stderr}`);
  // jest prints this and waits for what a test has left open.
  doesNotMatch(stderr, /did not exit/);
  const { testResults } = JSON.parse(await readFile(report, 'utf8'));
  const expected = [...specs.filter((spec) => !spec.includes(foreign)), 'app.controller.spec.ts'];
  deepEqual(
    testResults.map((each) => `${basename(each.name)} ${each.status}`).sort(),
    expected.map((each) => `${each} passed`).sort(),
  );
}
