// Node starts this program once for each cell. It prints what it has shown; any failure ends it with exit code 1.
import { exerciseLocks, exerciseTestingKit } from './locks.js';

const { MATRIX_MASTERS = '', MATRIX_PREFIX = '', MATRIX_BARE } = process.env;
const masters = MATRIX_MASTERS.split(',');

async function main(): Promise<void> {
  const shown: string[] = [];
  await exerciseLocks(masters, MATRIX_PREFIX);
  shown.push('locks');
  await exerciseTestingKit();
  shown.push('testing');
  if (MATRIX_BARE === undefined) {
    const { exerciseOptionalPeers } = await import('./optional.js');
    await exerciseOptionalPeers(masters, `${MATRIX_PREFIX}optional:`);
    shown.push('terminus', 'opentelemetry');
    const { exerciseJobs } = await import('./jobs.js');
    await exerciseJobs(masters, `${MATRIX_PREFIX}jobs:`);
    shown.push('schedule');
  }
  console.log(JSON.stringify(shown));
}

void main();
