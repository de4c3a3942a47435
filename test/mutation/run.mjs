// `npm run mutate`: changes the library at random places, and shows which changes no test notices.
import { readFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import embed from '../../scripts/embed.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { ensureRedisServer } from '../../scripts/redis-servers.mjs';
import { root } from '../../scripts/run.mjs';

const { values } = optionsOf({
  options: {
    sample: { type: 'string' },
    stages: { type: 'string' },
    workers: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    id: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
  },
});

await ensureDependencies();
embed();
// Not before: they import packages.
const { Compiler, sampleOf, withNames } = await import('./mutants.mjs');
const { coverageOf } = await import('./coverage.mjs');
const { specsFor, specsOf, STAGES } = await import('./specs.mjs');
const { readResults, reportOn, show, writeResult } = await import('./state.mjs');
const { forEach, runSpecs } = await import('./trial.mjs');

/** A test that takes this long hangs, in milliseconds, unless it takes long without a mutant, too. */
const TEST_TIMEOUT = 10_000;
const SPEC_TIMEOUT = 15_000;
/** How much longer than without a mutant a test may take. */
const SLACK = 2;

const compiler = new Compiler();
const chosen = values.id.split(',');
const places = values.only.split(',');
const all = withNames(compiler.mutants()).filter(
  ({ file, id }) => places.some((place) => file.includes(place)) && chosen.some((start) => id.startsWith(start)),
);
const workers = whole('workers');
const sample = sampleOf(all, { seed: values.seed, size: size() });
if (values.list) {
  for (const mutant of sample) console.log(show(mutant));
  console.log(`${sample.length} of ${all.length} mutants`);
} else {
  await tryAll();
}

function size() {
  return values.sample === undefined ? all.length : whole('sample');
}

function stages() {
  return values.stages === undefined ? STAGES.length : Math.min(STAGES.length, whole('stages'));
}

function whole(name) {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number > 0) return number;
  console.error(`--${name} must be a whole number above zero, not ${values[name]}`);
  return process.exit(2);
}

/**
 * All mutants pass through one stage after the other: what a run that was stopped leaves is complete up to a stage, and
 * only survivors reach the slow specs.
 */
async function tryAll() {
  await ensureRedisServer();
  const coverage = await coverageOf(await specsOf(STAGES.slice(0, stages())), { workers, print: console.log });
  const known = values.resume || values.survivors ? await readResults() : new Map();
  const states = await Promise.all(sample.map((mutant) => stateOf(mutant, known.get(mutant.id))));
  for (let stage = 0; stage < stages(); stage++) {
    const waiting = states.filter((state) => isOpen(state) && state.stage < stage);
    if (waiting.length > 0) console.log(`\n== ${waiting.length} mutants: ${STAGES[stage].join(', ')}`);
    await forEach(waiting, workers, async (state) => {
      const since = performance.now();
      Object.assign(state, await judge(state, coverage, stage), { stage });
      const seconds = (performance.now() - since) / 1_000;
      state.seconds += seconds;
      const { mutant, ...result } = state;
      await writeResult(result);
      const by = [result.spec, result.title].filter(Boolean).join(': ');
      console.log(`${result.verdict} ${seconds.toFixed(1)} s ${show(mutant)}  ${by}`);
    });
  }
  console.log(`\n${reportOn(states.filter(({ verdict }) => verdict !== 'untried'))}`);
}

/** An earlier result counts while the file is the same. A survivor that is tried again begins anew. */
async function stateOf(mutant, before) {
  const text = await readFile(join(root, mutant.file));
  const contents = createHash('sha256').update(text).digest('hex');
  const isSame = before?.contents === contents;
  if (isSame && !(values.survivors && isOpen(before))) return { ...before, mutant };
  // Others than survivors were not asked for.
  const stage = values.survivors && !isSame ? STAGES.length : -1;
  return { id: mutant.id, contents, verdict: 'untried', stage, seconds: 0, mutant };
}

function isOpen({ verdict }) {
  return verdict === 'survived' || verdict === 'untried';
}

/** Tries the specs of one stage, and the compiler before the first. */
async function judge({ mutant, title: earlier }, coverage, stage) {
  const refusal = stage === 0 ? compiler.refusalOf(mutant) : undefined;
  if (refusal) return { verdict: 'refused', title: refusal };
  let specs = specsFor(mutant, coverage, STAGES[stage]);
  const tried = (stage === 0 ? 0 : parseInt(earlier)) + specs.length;
  while (specs.length > 0) {
    const failure = await firstFailure(specs, mutant, coverage);
    if (!failure) break;
    if (!isDoubtful(failure) || (await firstFailure([failure.spec], mutant, coverage)))
      return { verdict: 'killed', ...failure };
    console.log(`fails once only: ${failure.spec}: ${failure.title}`);
    specs = specs.slice(specs.indexOf(failure.spec) + 1);
  }
  return { verdict: 'survived', title: `${tried} specs run this line` };
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

/** Whether the failure may come from a busy machine. It counts only if it happens twice. */
function isDoubtful({ spec }) {
  return /^test\/(?:e2e|integration)\//.test(spec);
}
