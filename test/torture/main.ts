// The program that test/torture/start.mjs runs after all preparations.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { check } from './checker.js';
import { type Phase } from './evidence.js';
import { assumptionsOf, complaints, summary } from './report.js';
import { torture } from './run.js';

interface PageModule {
  readonly writePart: (file: string, name: string, text: string) => Promise<void>;
}

const DEFAULT_SECONDS = 60;
/** A shorter run does not have time for every kind of fault. */
const LEAST_SECONDS = 20;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seconds: { type: 'string' },
    seed: { type: 'string' },
    masters: { type: 'string', default: '5' },
    workers: { type: 'string', default: '4' },
    'no-guard': { type: 'boolean', default: false },
    markdown: { type: 'string' },
  },
});
const seconds = number('minutes', values.minutes, 0) * 60 + number('seconds', values.seconds, 0) || DEFAULT_SECONDS;
const seed = number('seed', values.seed ?? String(1 + Math.floor(Math.random() * 2 ** 31)), 1);
const masters = number('masters', values.masters, 3);
const workers = number('workers', values.workers, 2);
if (seconds < LEAST_SECONDS) throw new Error(`--seconds must be at least ${LEAST_SECONDS}, for every kind of fault`);

const restartGuard = !values['no-guard'];
const guard = restartGuard ? '' : ' --no-guard';
const replay = `npm run torture -- --seconds ${seconds} --seed ${seed} --masters ${masters} --workers ${workers}${guard}`;
console.log(`${masters} masters, ${workers} workers, ${seconds} s of faults, seed ${seed}`);
const start = performance.now();
const options = {
  ...{ seed, workers, restartGuard, milliseconds: seconds * 1_000 },
  program: join(import.meta.dirname, 'worker.js'),
  // The build that users install.
  library: pathToFileURL(join(process.cwd(), 'dist/esm/index.js')).href,
  progress: (phase: Phase, accepted: number) => {
    const at = ((performance.now() - start) / 1_000).toFixed(1).padStart(6);
    console.log(`${at} s  ${phase.name} (${assumptionsOf(phase)}); ${accepted} writes so far`);
  },
};
const evidence = await torture({ ...options, masters });
const verdict = check(evidence);
const violations = Object.values(verdict).flat();
console.log(summary(evidence, verdict).join('\n'));
for (const line of complaints(evidence, verdict)) console.log(line);
if (values.markdown && violations.length === 0) {
  const { writePart } = (await import(pathToFileURL(join(process.cwd(), 'scripts/page.mjs')).href)) as PageModule;
  const text = `Written by \`npm run torture -- --seconds ${seconds} --seed ${seed} --markdown test/results.md\`.`;
  await writePart(
    values.markdown,
    'torture',
    `${text}\n\n\`\`\`text\n${summary(evidence, verdict).join('\n').trim()}\n\`\`\``,
  );
}
if (violations.length > 0) {
  console.log(`\nThe same faults again, though real processes meet them a little differently each time:\n  ${replay}`);
  process.exitCode = 1;
}
console.log(`\n${violations.length} violations. Seed ${seed}, ${((performance.now() - start) / 1_000).toFixed(1)} s.`);

function number(name: string, text: string | undefined, least: number): number {
  const value = Number(text ?? 0);
  if (Number.isFinite(value) && value >= least) return value;
  throw new Error(`--${name} must be a number from ${least}`);
}
