// `npm run mutate`: changes the library at random places, and shows which changes no test notices.
import { readFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { ensureRedisServer } from '../../scripts/redis-servers.mjs';
import { root } from '../../scripts/run.mjs';

const { values } = optionsOf({
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    id: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
  },
});

await ensureDependencies();
// Not before: they import packages.
const { Compiler } = await import('./compiler.mjs');
const { coverageOf } = await import('./coverage.mjs');
const { reportOn, show } = await import('./report.mjs');
const { sampleOf, withNames } = await import('./sample.mjs');
const { allSpecs, GROUPS, specsFor } = await import('./specs.mjs');
const { readResults, writeResult } = await import('./state.mjs');
const { runSpecs, TIME_LIMIT } = await import('./trial.mjs');

/** A test that takes this long hangs, in milliseconds, unless it takes long without a mutant, too. */
const TEST_TIMEOUT = 10_000;
const SPEC_TIMEOUT = 20_000;
/** How much longer than without a mutant a test may take. */
const SLACK = 4;

const compiler = new Compiler();
const all = withNames(compiler.mutants()).filter(
  ({ file, id }) => file.includes(values.only) && id.startsWith(values.id),
);
const sample = sampleOf(all, { seed: values.seed, size: size() });
if (values.list) {
  for (const mutant of sample) console.log(show(mutant));
  console.log(`${sample.length} of ${all.length} mutants`);
} else {
  await tryAll();
}

function size() {
  if (values.sample === undefined) return all.length;
  const number = Number(values.sample);
  if (Number.isSafeInteger(number) && number > 0) return number;
  console.error(`--sample must be a whole number, not ${values.sample}`);
  return process.exit(2);
}

async function tryAll() {
  await ensureRedisServer();
  const coverage = await coverageOf(await allSpecs(), console.log);
  const known = await readResults();
  const results = [];
  for (const mutant of sample) {
    const contents = createHash('sha256')
      .update(await readFile(join(root, mutant.file)))
      .digest('hex');
    const before = known.get(mutant.id);
    const isKnown = before?.contents === contents;
    if (values.survivors && !(isKnown && before.verdict === 'survived')) {
      if (isKnown) results.push({ mutant, ...before });
      continue;
    }
    if (isKnown && values.resume && !values.survivors) {
      results.push({ mutant, ...before });
      continue;
    }
    const since = performance.now();
    const verdict = await judge(mutant, coverage);
    const seconds = (performance.now() - since) / 1_000;
    const result = { id: mutant.id, contents, ...verdict, seconds };
    await writeResult(result);
    results.push({ mutant, ...result });
    const by = verdict.spec ? `${verdict.spec}: ${verdict.title}` : (verdict.title ?? '');
    console.log(`${results.length}/${sample.length} ${verdict.verdict} ${seconds.toFixed(1)} s ${show(mutant)}  ${by}`);
  }
  console.log(`\n${reportOn(results)}`);
}

/** Tries the cheap ways first. */
async function judge(mutant, coverage) {
  const refusal = compiler.refusalOf(mutant);
  if (refusal) return { verdict: 'refused', title: refusal };
  let tried = 0;
  for (const folders of GROUPS) {
    let specs = specsFor(mutant, coverage, folders);
    tried += specs.length;
    while (specs.length > 0) {
      const failure = await firstFailure(specs, mutant, coverage);
      if (!failure) break;
      if (isInVirtualTime(failure) || (await firstFailure([failure.spec], mutant, coverage)))
        return { verdict: 'killed', ...failure };
      console.log(`fails once only: ${failure.spec}: ${failure.title}`);
      specs = specs.slice(specs.indexOf(failure.spec) + 1);
    }
  }
  return { verdict: 'survived', title: tried === 0 ? 'no spec runs this line' : `${tried} specs` };
}

async function firstFailure(specs, mutant, coverage) {
  const longest = Math.max(...specs.map((spec) => coverage.get(spec).longest));
  const { failure } = await runSpecs(specs, {
    mutant,
    testTimeout: Math.round(Math.max(TEST_TIMEOUT, SLACK * longest)),
    limitOf: (spec) => SPEC_TIMEOUT + SLACK * coverage.get(spec).milliseconds,
  });
  return failure;
}

/** Whether the failure cannot come from a busy machine. Another one counts only if it happens twice. */
function isInVirtualTime({ spec, title }) {
  return /^test\/(?:unit\/(?:core|memory|redis|nest)|simulation)\//.test(spec) && title !== TIME_LIMIT;
}
