// The command: prints what was found, and exits with 1 if that is not what has to be.
import { optionsOf } from '../../../scripts/options.mjs';
import { DATABASES, tortureFenced } from './main.mjs';

const { values } = optionsOf({
  options: {
    fenced: { type: 'boolean', default: true },
    seconds: { type: 'string', default: '60' },
    database: { type: 'string' },
    fence: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const seconds = Number(values.seconds);
if (!(seconds >= 5)) throw new Error('--seconds must be 5 or more');
const chosen = values.database ? [values.database] : Object.keys(DATABASES);
for (const dialect of chosen) {
  if (!Object.hasOwn(DATABASES, dialect)) throw new Error(`--database must be ${Object.keys(DATABASES).join(' or ')}`);
}

for (const dialect of chosen) {
  const { name, totals, ...found } = await tortureFenced({ dialect, seconds, fenced: values.fence });
  const { commits, late, lost, beside } = found;
  console.log(`${name}, ${seconds} s, ${values.fence ? 'with' : 'without'} the fence: ${commits} commits`);
  console.log(`  ${late} late, ${lost} lost updates, ${beside} commits beside a fenced transaction`);
  console.log(`  ${JSON.stringify(totals)}`);
  const isRight = values.fence ? late + lost + beside === 0 && commits > 0 : lost > 0;
  if (!isRight) process.exitCode = 1;
}
