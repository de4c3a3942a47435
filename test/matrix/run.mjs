// `npm run matrix`: tries the packed library in every combination that it supports. With `--spread`, each application runs
// on two of the versions of Node, so that each version has an application. At first it imports only Node's own modules and
// scripts, because nothing else may be installed yet.
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { writePart } from '../../scripts/page.mjs';
import { ensureRedisServer, RedisServer } from '../../scripts/redis-servers.mjs';
import { ensureNode, ensureTypeScript, inParallel } from './command.mjs';
import { CONSUMERS, NEWCOMERS_NODE, NODES, TYPE_CHECKS, TYPESCRIPTS } from './corners.mjs';
import { dependencyCell } from './dependencies.mjs';
import { nestAddCells } from './nest-add.mjs';
import { newcomerCell } from './newcomer.mjs';
import { reportOn } from './report.mjs';
import { runTimeCells } from './run-time.mjs';
import { runnerCells } from './runners.mjs';
import { typeCell } from './types.mjs';

const { values } = optionsOf({
  options: {
    markdown: { type: 'string' },
    only: { type: 'string', default: '' },
    spread: { type: 'boolean', default: false },
  },
});
if (values.markdown && (values.only || values.spread)) {
  throw new Error('--markdown writes the whole table, --only and --spread try a part of it');
}

await ensureDependencies();
await ensureRedisServer();
await ensureBuild();
const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
const results = [];
try {
  const { cells, last } = await prepare(servers.map(({ url }) => url));
  const chosen = cells.filter(isChosen);
  console.log(`${chosen.length} of ${cells.length} cells, and a newcomer's path`);
  results.push(...(await inParallel(chosen.map((cell) => () => resultOf(cell)))));
  // Runs alone, because it depends on the time.
  if (isChosen(last)) results.push(await resultOf(last));
} finally {
  await Promise.all(servers.map((server) => server.stop()));
}

const report = reportOn(results);
console.log(`\n${report}`);
if (values.markdown) await writePart(values.markdown, 'matrix', report);
const count = (status) => results.filter((result) => result.status === status).length;
console.log(`\n${count('n.a.')} n.a., ${Math.round(process.uptime())} s`);
console.log(`${count('ok')} passed, ${count('failed')} failed`);
process.exitCode = count('failed') > 0 || count('ok') === 0 ? 1 : 0;

/** Installs what is missing, and resolves with the cells to try. */
async function prepare(masters) {
  // Not before: its packages have just been installed.
  const { install, pack } = await import('./install.mjs');
  const tarball = await pack();
  console.log('Installing applications, and versions of Node and TypeScript, unless they are there');
  const [nodes, compilers, folders] = await Promise.all([
    each(NODES, ensureNode),
    each(TYPESCRIPTS, ensureTypeScript),
    inParallel(CONSUMERS.map((consumer) => () => install(consumer, tarball))),
  ]);
  const folderOf = (name) => folders[CONSUMERS.findIndex((consumer) => consumer.name === name)];
  const version = NEWCOMERS_NODE;
  const last = newcomerCell({ tarball, node: nodes[version], version, masters });
  const cells = [
    dependencyCell(folderOf('bare')),
    ...runnerCells({ tarball, node: nodes[version], version }),
    ...TYPE_CHECKS.map((check) =>
      typeCell({ check, folder: folderOf(check.consumer), compiler: compilers[check.typescript] }),
    ),
    ...CONSUMERS.flatMap((consumer, index) =>
      nodesFor(index).flatMap((version) =>
        runTimeCells({ consumer, folder: folderOf(consumer.name), node: nodes[version], version, masters }),
      ),
    ),
    ...nestAddCells({ tarball, nodes, masters }),
  ];
  return { cells, last };
}

/** The versions of Node for one of the applications. */
function nodesFor(index) {
  const apart = NODES.length / 2;
  return values.spread ? NODES.filter((_, node) => node % apart === index % apart) : NODES;
}

function isChosen(cell) {
  return wordsOn(cell).includes(values.only);
}

async function each(versions, ensure) {
  const paths = await inParallel(versions.map((version) => () => ensure(version)));
  return Object.fromEntries(versions.map((version, i) => [version, paths[i]]));
}

async function resultOf({ run, ...cell }) {
  try {
    const outcome = await run();
    return outcome ? { ...cell, status: 'n.a.', reason: outcome.notApplicable } : { ...cell, status: 'ok' };
  } catch (error) {
    console.error(`\nFAILED ${wordsOn(cell)}\n${error.message}`);
    return { ...cell, status: 'failed' };
  }
}

function wordsOn({ table, row, column, part }) {
  return [table, row, column, part].join(' / ');
}
