import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';

/** Few enough that no lock ends within a round, even on a busy machine. */
const LOCKS = 500;
const ROUNDS = 8;
const TTL = 3_000;
/** The upper limit for all scripts, as a multiple of the locks. Nothing runs once per lock besides the acquisition. */
const MOST_BESIDES = 1.1;
/** The upper limit for the server time with the guard, as a multiple of a plain `SET NX PX`. */
const MOST = 4;

it('with the guard, an acquisition takes one round trip and a script of few commands', async () => {
  await using masters = await startMasters(1);
  const { port } = masters.servers[0]!;
  const options = { ttl: TTL, maxTtl: TTL, masterTimeout: TTL / 4, restartGuard: true };
  await using contender = await Contender.on(masters.urls, options);
  await eventually(() => contender.redlock.status().canVote);
  const plain = new Redis(port, '127.0.0.1');
  const costs: { readonly guarded: number; readonly bare: number }[] = [];
  const commandRatios: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const locks = [];
      await command(port, 'CONFIG', 'RESETSTAT');
      const atFirst = await used(port);
      for (let i = 0; i < LOCKS; i++) locks.push(await contender.acquire(`cost:${round}:${i}`, TTL, { wait: 0 }));
      const guarded = await used(port);
      const stats = String(await command(port, 'INFO', 'commandstats'));
      // Besides the locks, the process announces the ttl in use every two seconds, and checks the clock.
      const calls = field(stats, 'evalsha', 'calls');
      expect(calls).toBeGreaterThanOrEqual(LOCKS);
      expect(calls).toBeLessThanOrEqual(LOCKS * MOST_BESIDES);
      expect(stats).not.toMatch(/cmdstat_(eval|script\|load):/);
      await Promise.all(locks.map((lock) => lock.release()));

      await command(port, 'CONFIG', 'RESETSTAT');
      const between = await used(port);
      for (let i = 0; i < LOCKS; i++) await plain.set(`plain:${round}:${i}`, 'x'.repeat(22), 'PX', TTL, 'NX');
      costs.push({ guarded: guarded - atFirst, bare: (await used(port)) - between });
      const bare = String(await command(port, 'INFO', 'commandstats'));
      commandRatios.push(field(stats, 'evalsha', 'usec_per_call') / field(bare, 'set', 'usec_per_call'));
    }
  } finally {
    plain.disconnect();
  }
  // The median is robust: the cost of waking up a server that waits for each request varies between and within rounds.
  const ratios = costs.map(({ guarded, bare }) => guarded / bare).sort((a, b) => a - b);
  const ratio = ratios[ROUNDS >> 1]!;
  report(`server time of an acquisition with the guard, in times of SET NX PX: ${ratio.toFixed(1)}`);
  report(`the same in each round, sorted: ${shown(ratios)}`);
  report(`the same without reading and writing the socket: ${shown(commandRatios)}`);
  // The ratio includes all work of the server for a request, also reading and writing the socket.
  expect(ratio).toBeLessThan(MOST);
}, 60_000);

/** Seconds of processor time that the server has used. */
async function used(port: number): Promise<number> {
  const cpu = String(await command(port, 'INFO', 'cpu'));
  const [user = NaN, system = NaN] = ['user', 'sys'].map((kind) =>
    Number(cpu.split(`used_cpu_${kind}:`)[1]?.split('\r')[0]),
  );
  return user + system;
}

function field(stats: string, name: string, key: string): number {
  return Number(new RegExp(`^cmdstat_${name}:.*?${key}=([\\d.]+)`, 'm').exec(stats)?.[1]);
}

function shown(numbers: readonly number[]): string {
  return numbers.map((number) => number.toFixed(1)).join(', ');
}

function report(line: string): void {
  process.stderr.write(`${line}\n`);
}
