// `npm run torture`, after the preparations of start.mjs.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check } from './checker.js';
import { type Outcome } from './child.js';
import { assumptionsOf, complaints, summary } from './report.js';
import { torture } from './run.js';

interface Options {
  readonly seconds: number;
  readonly seed: number;
  readonly masters: number;
  readonly workers: number;
  readonly guard: boolean;
}

export async function main({ seconds, seed, masters, workers, guard }: Options): Promise<Outcome> {
  console.log(`${masters} masters, ${workers} workers, ${seconds} s of faults, seed ${seed}`);
  const start = performance.now();
  const evidence = await torture({
    ...{ seed, masters, workers, restartGuard: guard, milliseconds: seconds * 1_000 },
    program: join(import.meta.dirname, 'worker.js'),
    // The build that users install.
    library: pathToFileURL(join(process.cwd(), 'dist/esm/index.js')).href,
    progress: (phase, accepted) => {
      const at = ((performance.now() - start) / 1_000).toFixed(1).padStart(6);
      console.log(`${at} s  ${phase.name} (${assumptionsOf(phase)}); ${accepted} writes so far`);
    },
  });
  const verdict = check(evidence);
  for (const line of complaints(evidence, verdict)) console.log(line);
  const problems = Object.entries(verdict).flatMap(([name, all]) => all.map(({ message }) => `${name}: ${message}`));
  return { text: `\`\`\`text\n${summary(evidence, verdict).join('\n').trim()}\n\`\`\``, problems };
}
