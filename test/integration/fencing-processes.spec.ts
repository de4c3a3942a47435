import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { FenceTask } from '../processes/fence.js';
import { compileLibrary, type Program, start } from '../support/compiled.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Register } from '../support/register.js';
import { disorderOf, duplicatesOf, overlapsOf } from '../support/sections.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/**
 * For a longer run: `FENCING_MS=300000`. The seed decides the kind and time of each fault. What a fault hits depends on
 * the machine.
 */
const { FENCING_MS = '8000', FENCING_SEED = String(Math.floor(Math.random() * 2 ** 31)) } = process.env;

const KEYS = ['hot', 'warm'];
/**
 * A master that lost its data waits for `maxTtl` and the drift before it votes. With ttls this short, several masters
 * can leave and return in a run of a few seconds. The guarantee is the same for every length.
 */
const OPTIONS = { ttl: 500, maxTtl: 500, masterTimeout: 100, restartGuard: true };
const QUARANTINE = 600;
/** Clocks of clients differ by less than the quarantine, in milliseconds. */
const MOST_AHEAD = 300;

describe('Eight processes and five masters, with kills, pauses and partitions', () => {
  it(
    'give out tokens that are unique per key and grow in the order of the critical sections, and accept no stale write',
    async () => {
      const random = randomOf(Number(FENCING_SEED));
      await using masters = await startMasters(5);
      // Each master has two proxies, one for each half of the processes. A partition cuts off one half only.
      const sides = await Promise.all([proxiesOf(masters), proxiesOf(masters)]);
      await using register = await Register.open();
      await using compiled = await compileLibrary();
      const milliseconds = Number(FENCING_MS) + QUARANTINE;
      const programs: Program[] = [];
      try {
        for (let i = 0; i < 8; i++) {
          const urls = sides[i % 2]!.map(({ url }) => url);
          const ahead = random(MOST_AHEAD);
          const common = { keys: KEYS, options: OPTIONS, register: register.port, milliseconds };
          const task: FenceTask = { ...common, id: i, urls, ahead };
          programs.push(start(compiled, 'fence', task));
        }
        const ended = Promise.all(programs.map((program) => program.ended));
        const over = new AbortController();
        const counts = wreak({ random, masters, sides, programs, register }, over.signal);
        await sleep(milliseconds);
        over.abort();
        const faults = await counts;
        expect(await ended).toEqual(programs.map(() => 0));

        const { sections, refused } = register;
        const summary = { seed: FENCING_SEED, sections: sections.length, refused, ...faults };
        process.stdout.write(`fencing: ${JSON.stringify(summary)}\n`);
        // Enough to compare. A busy machine takes longer for each, and the faults last as long as they do anywhere.
        expect(sections.length).toBeGreaterThan(30);
        for (const { token } of sections) expect(Number.isSafeInteger(token) && token > 0).toBe(true);
        for (const key of KEYS) {
          const ofKey = sections.filter(({ keys }) => keys.includes(key));
          expect(duplicatesOf(ofKey)).toEqual([]);
          expect(disorderOf(ofKey)).toEqual([]);
          expect(overlapsOf(ofKey)).toEqual([]);
          // If no sections overlap, their start times give their order. The tokens must have the same order.
          const tokens = [...ofKey].sort((a, b) => a.since - b.since).map(({ token }) => token);
          expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
        }
        expect(register.staleAccepted).toEqual([]);
      } finally {
        for (const program of programs) program.kill();
        await Promise.all(sides.flat().map((proxy) => proxy.close()));
      }
    },
    60_000 + 2 * Number(FENCING_MS),
  );
});

interface World {
  /** Returns a whole number from 0 to below the bound. */
  readonly random: (bound: number) => number;
  readonly masters: Masters;
  readonly sides: readonly (readonly TcpProxy[])[];
  readonly programs: readonly Program[];
  readonly register: Register;
}

/** Kills, pauses and cuts off processes until `over` aborts, and leaves all of them running. */
async function wreak({ random, masters, sides, programs, register }: World, over: AbortSignal) {
  const counts = { kills: 0, mastersPaused: 0, processesPaused: 0, partitions: 0 };
  const idle = (milliseconds: number) => sleep(milliseconds, undefined, { signal: over }).catch(() => undefined);
  const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
  const busy = new Set<object>();
  const exclusively = async (server: Masters['servers'][number], fault: () => Promise<void>): Promise<void> => {
    if (busy.has(server)) return;
    busy.add(server);
    await fault().finally(() => busy.delete(server));
  };
  const again = async (least: number, most: number, fault: () => Promise<void>): Promise<void> => {
    for (;;) {
      await idle(least + random(most - least));
      if (over.aborted) return;
      await fault();
    }
  };
  await idle(QUARANTINE);
  await Promise.all([
    // The period is close to the quarantine, so that a master is sometimes killed while another is still in quarantine.
    again(QUARANTINE / 3, QUARANTINE * 1.5, async () => {
      const server = pick(masters.servers);
      await exclusively(server, async () => {
        await server.kill();
        counts.kills++;
        await idle(random(300));
        await server.restart();
      });
    }),
    again(100, 800, async () => {
      const server = pick(masters.servers);
      await exclusively(server, async () => {
        server.pause();
        counts.mastersPaused++;
        await idle(50 + random(800));
        server.resume();
      });
    }),
    again(50, 500, async () => {
      // Pauses a random process, or one that has just read the token that it is about to write.
      const id = random(2) === 0 ? random(programs.length) : await register.nextClaim(over);
      const program = id === undefined ? undefined : programs[id];
      if (!program) return;
      program.pause();
      counts.processesPaused++;
      await idle(50 + random(3 * OPTIONS.ttl));
      program.resume();
    }),
    again(200, 1_000, async () => {
      const proxies = pick(sides);
      const cut = [pick(proxies), pick(proxies)];
      for (const proxy of cut) proxy.blackHole();
      counts.partitions++;
      await idle(50 + random(600));
      // The swallowed bytes are missing in the middle of the stream, so only a new connection helps.
      for (const proxy of cut) {
        proxy.blackHole(false);
        proxy.reset();
      }
    }),
  ]);
  return counts;
}

function proxiesOf({ servers }: Masters): Promise<TcpProxy[]> {
  return Promise.all(servers.map(({ port }) => TcpProxy.to(port)));
}

/** @see https://github.com/cprosche/mulberry32 */
function randomOf(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}
