import { markdownTable } from '../../scripts/page.mjs';
import { CONSUMERS } from './corners.mjs';
import { listOfDependencies } from './dependencies.mjs';

/** The status of a cell in the words of a table. */
const MARKS = { ok: 'ok', 'n.a.': 'n.a.', failed: '**failed**' };

/**
 * A Markdown table with rows and columns in the order of the results. A cell whose parts differ lists those that are
 * not ok.
 */
export function tableOf(corner, results) {
  const columns = distinct(results.map(({ column }) => column));
  const rows = distinct(results.map(({ row }) => row)).map((row) => [
    row,
    ...columns.map((column) => cellOf(results.filter((each) => each.row === row && each.column === column))),
  ]);
  return markdownTable([[corner, ...columns], ...rows]);
}

/** Why cells are not applicable, each reason once. */
function reasonsOf(results) {
  const reasons = results.filter(({ status }) => status === 'n.a.').map(({ reason }) => reason);
  return distinct(reasons)
    .map((reason) => `- n.a.: ${reason}`)
    .join('\n');
}

function cellOf(parts) {
  const statuses = distinct(parts.map(({ status }) => status));
  if (statuses.length === 0) return '';
  if (statuses.length === 1) return MARKS[statuses[0]];
  const odd = parts.filter(({ status }) => status !== 'ok').map(({ part, status }) => `${part} ${MARKS[status]}`);
  return [MARKS.ok, ...odd].join(', ');
}

function distinct(values) {
  return [...new Set(values)];
}

// The parts of the README that a reader copies.

/** The text from a heading of the second level to the next one. */
export function sectionOf(markdown, heading) {
  const [, section] = markdown.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`There is no section "${heading}"`);
  return section.split('\n## ')[0];
}

/** The only fenced code block of a language. */
export function codeOf(section, language) {
  const blocks = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, found]) => found === language);
  if (blocks.length !== 1)
    throw new Error(`There are ${blocks.length} blocks of ${language} instead of one:\n${section}`);
  return blocks[0][2];
}

/** The text with some words replaced, each of which must occur exactly once. */
export function withWords(text, words) {
  let changed = text;
  for (const [word, other] of Object.entries(words)) {
    const count = text.split(word).length - 1;
    if (count !== 1) throw new Error(`"${word}" is there ${count} times instead of once:\n${text}`);
    changed = changed.replace(word, () => other);
  }
  return changed;
}

const RUN_TIME = `The packed tarball, installed by npm into an application and started by each version of Node: once as ESM and once as
CommonJS, two instances of a Nest application with three Redis servers exclude each other, a second holder is refused,
fencing tokens grow, HTTP requests are locked, the testing kit, Terminus and OpenTelemetry work; deep imports are refused
and \`import\` and \`require\` give the same classes; the command line examines the servers; and with the flag of Node that
forbids to load ESM by \`require\`, so that there are two copies in one process, they work together.`;

const TYPES = `The same application, type checked with \`strict\`, \`exactOptionalPropertyTypes\` and without \`skipLibCheck\`. Where Nest
or the compiler itself refuses, the table says n.a., and the run fails if it refuses for any other reason.`;

const NEST_ADD = `\`nest new\`, then \`nest add nestjs-redlock\` twice: the second run changes nothing. The application builds, its
tests and the generated one pass, and it starts with three Redis servers.`;

const NEWCOMER = `From an empty folder: \`nest new\`, what the README says to install, its code for a cron job, a build, and three instances
with three Redis servers. In every tick the job runs on exactly one of them, and the same job without the lock on all
three. Only the addresses and the time of the job are not the README's.`;

const RUNNERS = `The examples of [testing](testing.md), as they stand, in applications that \`nest new\` generates. The settings of
jest are those of that page; Vitest and ts-jest are configured as generated, except for one line that ts-jest needs for
imports that end in \`.js\`. No runner is kept alive by the tests that close nothing.`;

const DEPENDENCIES = 'What comes along with the library, besides peers:';

/** All tables that have results, as a part of a page. */
export function reportOn(results) {
  const of = (table) => results.filter((result) => result.table === table);
  const types = of('types').map((result) => ({ ...result, column: titleOf(result.column) }));
  const parts = [
    ...partOf('At run time', RUN_TIME, 'application', of('run time')),
    ...partOf('Types', TYPES, 'compiler and setting', types),
    ...partOf('nest add', NEST_ADD, 'application', of('nest add')),
    ...partOf("A newcomer's path", NEWCOMER, 'application', of('newcomer')),
    ...partOf('Test runners', RUNNERS, 'runner, application', of('test runners')),
    ...partOf('Dependencies', `${DEPENDENCIES}\n\n${listOfDependencies()}`, 'installed', of('dependencies')),
  ];
  return ['Written by `npm run matrix -- --markdown docs/matrix.md`.', ...parts].join('\n\n').concat('\n');
}

function partOf(title, text, corner, results) {
  if (results.length === 0) return [];
  const reasons = reasonsOf(results);
  return [`## ${title}`, text, tableOf(corner, results), ...(reasons ? [reasons] : [])];
}

function titleOf(name) {
  return CONSUMERS.find((consumer) => consumer.name === name).title;
}
