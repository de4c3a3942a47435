import { CONSUMERS } from './corners.mjs';
import { listOfDependencies } from './dependencies.mjs';
import { reasonsOf, tableOf } from './table.mjs';

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
