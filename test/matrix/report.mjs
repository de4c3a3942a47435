import { CONSUMERS } from './corners.mjs';
import { listOfDependencies } from './dependencies.mjs';

/** A list in the order of the results, in which rows with the same cells are one item. Parts that are not ok are named. */
export function listOf(results) {
  const columns = distinct(results.map(({ column }) => column));
  const rows = new Map();
  for (const row of distinct(results.map((result) => result.row))) {
    const cells = cellsOf(row, columns, results);
    rows.set(cells, [...(rows.get(cells) ?? []), row]);
  }
  return [...rows].map(([cells, names]) => `- ${cells}: ${names.join('; ')}`).join('\n');
}

/** What all columns have in common, or each column with its cell. */
function cellsOf(row, columns, results) {
  const cells = columns.map((column) => cellOf(results.filter((each) => each.row === row && each.column === column)));
  if (new Set(cells).size === 1) return cells[0];
  return columns.map((column, i) => `${column}: ${cells[i]}`).join('; ');
}

/** Why cells are not applicable, each reason once. */
function reasonsOf(results) {
  const reasons = results.filter(({ status }) => status === 'n.a.').map(({ reason }) => reason);
  return distinct(reasons)
    .map((reason) => `n.a.: ${reason}.`)
    .join(' ');
}

function cellOf(parts) {
  const statuses = distinct(parts.map(({ status }) => status));
  if (statuses.length === 0) return '';
  const mark = (status) => (status === 'failed' ? '**failed**' : status);
  if (statuses.length === 1) return mark(statuses[0]);
  const odd = parts.filter(({ status }) => status !== 'ok').map(({ part, status }) => `${part} ${mark(status)}`);
  return ['ok', ...odd].join(', ');
}

function distinct(values) {
  return [...new Set(values)];
}

const RUN_TIME = `The packed tarball in an application on each Node, as ESM and as CommonJS: two instances of Nest exclude each other on
three Redis servers; tokens, requests, testing kit, Terminus, OpenTelemetry and command line work; \`import\` and \`require\`
give the same classes or, where Node is told not to load ESM by \`require\`, two copies that work together.`;

const TYPES = `With \`strict\`, \`exactOptionalPropertyTypes\`, and without \`skipLibCheck\`.`;

const NEST_ADD = `\`nest new\`, then \`nest add nestjs-redlock\` twice: the second run changes nothing. The application builds, its tests pass,
and it starts with three Redis servers.`;

const NEWCOMER = `\`nest new\`, then the cron job of the README in three instances with three Redis servers: each tick runs on exactly one of
them, and without the lock on all three.`;

const RUNNERS = `The examples of [testing](testing.md), as they stand, in applications that \`nest new\` generates.`;

const DEPENDENCIES = 'What comes along with the library, besides peers:';

/** All tables that have results, as a part of a page. */
export function reportOn(results) {
  const of = (table) => results.filter((result) => result.table === table);
  const types = of('types').map((result) => ({ ...result, column: titleOf(result.column) }));
  const parts = [
    ...partOf('At run time', RUN_TIME, of('run time')),
    ...partOf('Types', TYPES, types),
    ...partOf('nest add', NEST_ADD, of('nest add')),
    ...partOf("A newcomer's path", NEWCOMER, of('newcomer')),
    ...partOf('Test runners', RUNNERS, of('test runners')),
    ...partOf('Dependencies', `${DEPENDENCIES}\n\n${listOfDependencies()}`, of('dependencies')),
  ];
  return ['Written by `npm run matrix -- --markdown docs/matrix.md`.', ...parts].join('\n\n').concat('\n');
}

function partOf(title, text, results) {
  if (results.length === 0) return [];
  const reasons = reasonsOf(results);
  const columns = distinct(results.map(({ column }) => column)).join('; ');
  const versions = /\d/.test(columns) ? [`${columns}:`] : [];
  return [`## ${title}`, text, ...versions, listOf(results), ...(reasons ? [reasons] : [])];
}

function titleOf(name) {
  return CONSUMERS.find((consumer) => consumer.name === name).title;
}
