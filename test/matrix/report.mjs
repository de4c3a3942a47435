import { CONSUMERS } from './corners.mjs';
import { listOfDependencies } from './dependencies.mjs';
import { reasonsOf, tableOf } from './table.mjs';

const RUN_TIME = `The packed tarball, installed by npm into an application and started by each version of Node: once as ESM and once as
CommonJS, two instances of a Nest application with three Redis servers exclude each other, a second holder is refused,
fencing tokens grow, HTTP requests are locked, the testing kit, Terminus and OpenTelemetry work; deep imports are refused
and \`import\` and \`require\` give the same classes; the command line examines the servers; and where Node is told not to
load ESM by \`require\`, so that there are two copies in one process, they work together.`;

const TYPES = `The same application, type checked with \`strict\`, \`exactOptionalPropertyTypes\` and without \`skipLibCheck\`. Where Nest
or the compiler itself refuses, the table says n.a., and the run fails if it refuses for any other reason.`;

/** All tables, as a page. */
export function reportOn(results) {
  const of = (table) => results.filter((result) => result.table === table);
  const types = of('types').map((result) => ({ ...result, column: titleOf(result.column) }));
  return [
    '# Package matrix',
    'Written by `npm run matrix -- --markdown docs/matrix.md`.',
    '## At run time',
    RUN_TIME,
    tableOf('application', of('run time')),
    reasonsOf(of('run time')),
    '## Types',
    TYPES,
    tableOf('compiler and setting', types),
    reasonsOf(types),
    '## Dependencies',
    'What comes along with the library, besides peers.',
    tableOf('installed', of('dependencies')),
    listOfDependencies(),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

function titleOf(name) {
  return CONSUMERS.find((consumer) => consumer.name === name).title;
}
