// The simulation is only useful if the simulated server behaves like a real one. Both get the same commands.
import { isDeepStrictEqual } from 'node:util';
import { WRITER } from '../../lib/settings/keyspace.js';
import { describe, expect, it } from '@jest/globals';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { REVOKED, signatureOf } from '../../lib/redlock/holder.js';
import type { MasterRequest } from '../../lib/masters/master.interface.js';
import { REPORT, STATE } from '../../lib/redis/scripts/lua.generated.js';
import { Chance } from './engine/chance.js';
import { ModelPair } from './model-pair.js';
import { MODEL_FAULTS } from './server/operations.js';

const KEYS = ['a', 'b'];
const TOKENS = ['token1', 'token2', `${'ab12'.repeat(7)}${signatureOf('one:1', 1_790_000_000_000)}`, REVOKED];
/** The last waiter listens to no channel. */
const WAITERS = ['wake1', 'wake2', 'deaf'];
const LISTENING = 2;
const MARKER = 'marker';
const STATES = ['state:a', 'state:b'];
const STEPS = 601;
/** Not all differences of the data show in answers, and some disappear again. */
const COMPARED_EVERY = 5;
/** Long enough for any machine: keys expire only when a command makes them expire. */
const LONG = 3_600_000;
const MINUTE = 60_000;

class Trace {
  private waited = 0;

  constructor(
    private readonly pair: ModelPair,
    private readonly chance: Chance,
    private readonly marked: boolean,
  ) {}

  /** Runs one command on both servers. Returns the difference, if any. */
  async step(): Promise<object | undefined> {
    const { chance } = this;
    if (chance.happens(0.15)) {
      return this.operate();
    }
    const { real, simulated, command } = chance.happens(0.12)
      ? await this.identify()
      : chance.happens(0.2)
        ? await this.state()
        : await this.request();
    return real === simulated ? undefined : { command, real, simulated };
  }

  private async request() {
    const { chance, marked, pair } = this;
    if (!marked && chance.happens(0.1)) {
      return pair.call('SET', [chance.pick(KEYS), chance.pick(TOKENS), 'PX', this.anyTtl(), 'NX']);
    }
    const requests = Array.from({ length: chance.whole(1, 3) }, () => this.anyRequest());
    const gate = marked ? [MARKER, this.anyWait()] : ['', LONG];
    const outcome = await pair.run([0, ...gate, 'fences', ...new RequestEncoder().encode(requests, true)]);
    await this.adoptTimes();
    return { ...outcome, command: requests.map(({ op }) => op).join(' ') };
  }

  private async state() {
    const { chance, pair, marked } = this;
    const { run, data } = pair.simulated;
    const op = chance.pick(['open-state', 'open-state', 'write-state', 'write-state', 'read-state']);
    const from = chance.happens(0.9) ? (data.hget(MARKER, 'from') ?? '') : '1';
    const known = `${chance.happens(0.9) ? run : 'f'.repeat(40)}-${from}`;
    const server = marked ? [MARKER, this.anyWait(), known] : ['', LONG, ''];
    const entry = chance.pick(STATES);
    const number = chance.pick([9, 10, 1e15 + chance.whole(0, 3)]).toFixed(0);
    const holder = [chance.pick(KEYS), chance.pick(TOKENS), LONG, number];
    const write = [...holder, chance.pick([9, 10]), chance.pick(['', '{"a b":"c\\nd"}'])];
    const rest = { 'open-state': holder, 'write-state': write, 'read-state': [] }[op] ?? [];
    const outcome = await pair.call('EVAL', [STATE, 0, op, ...server, entry, ...rest]);
    await this.adoptTimes();
    return { ...outcome, command: op };
  }

  /** No two keys end within the time that the trace takes: which of them ends first does not depend on the machine. */
  private anyTtl(): number {
    return LONG + MINUTE * this.chance.whole(0, 10_000);
  }

  /** A wait that ends at once, or one that ends when the trace sets back the marker. */
  private anyWait(): number {
    return this.chance.pick([-LONG, -LONG, -LONG, LONG]);
  }

  /** What comes from the server's own clock. */
  private async adoptTimes(): Promise<void> {
    await this.pair.adopt(MARKER, 'from');
    for (const key of KEYS) await this.pair.adoptCounter('fences', String(key.charCodeAt(0)));
  }

  private anyRequest(): MasterRequest {
    const { chance } = this;
    const keys = chance.pick([['a'], ['b'], KEYS]);
    const queues = keys.map((key) => `queue:${key}`);
    const token = chance.pick(TOKENS);
    const counters = keys.map((key) => key.charCodeAt(0));
    const ttl = this.anyTtl();
    const waiter = chance.pick(WAITERS);
    const asked = { keys, token, ttl, withdrawn: false, since: 0 };
    const writerKeys = queues.map((queue) => queue + WRITER);
    // No two waiters have waited since the same moment, however long the commands take.
    this.waited += 1_000_000;
    const waited = chance.happens(0.5) ? this.waited : 1_000_000_000 - this.waited;
    const queue = chance.happens(0.6) ? { queues, waiter, waited, reserveFor: chance.whole(50, 1_000) } : undefined;
    switch (
      chance.pick([
        ...(['share', 'share', 'share', 'prolong', 'unshare', 'unshare', 'want', 'pick'] as const),
        ...(['acquire', 'acquire', 'acquire', 'extend', 'draw', 'draw'] as const),
        ...(['release', 'release', 'leave', 'inspect', 'probe'] as const),
      ])
    ) {
      case 'acquire':
        return { ...asked, op: 'acquire', queue };
      case 'share':
        return { ...asked, op: 'acquire', queue, sharing: { writerKeys, waited } };
      case 'prolong':
        return { ...asked, op: 'extend', isShared: true, heals: chance.happens(0.5) };
      case 'unshare':
        return { op: 'release', keys, queues, token, keepFor: 0, ttl, isShared: true };
      case 'want':
        return { op: 'defer-readers', keys, writerKeys, waiter, waited };
      case 'pick': {
        const slots = chance.pick([KEYS, ['b', 'a'], ['b', 'a', 'c']]);
        return { ...asked, op: 'pick', keys: slots, queue: queue && { ...queue, queues: ['queue:a'] } };
      }
      case 'extend':
        return { ...asked, op: 'extend', heals: chance.happens(0.5) };
      case 'draw': {
        const atLeast = chance.happens(0.02) ? 4e15 + chance.whole(0, 1_000) : chance.whole(0, 1_000_000);
        return { op: 'draw', keys, token, counters, atLeast, isFirst: chance.happens(0.5), since: 0 };
      }
      case 'release':
        return { op: 'release', keys, queues, token, keepFor: chance.pick([0, 0, this.anyTtl()]), ttl };
      case 'leave':
        return { op: 'leave', keys, queues, waiter, isShared: chance.happens(0.5) };
      case 'inspect':
        return { op: 'inspect', keys, queues };
      case 'probe':
        return { op: 'probe', keys: ['probed'] };
    }
  }

  private async identify() {
    const { chance, marked, pair } = this;
    const words = marked || chance.happens(0.2) ? [MARKER, chance.happens(0.2) ? '' : this.anyWait()] : [''];
    const outcome = await pair.call('EVAL', [REPORT, 0, ...words]);
    await this.adoptTimes();
    return outcome;
  }

  private async operate(): Promise<object | undefined> {
    const { chance, pair } = this;
    const key = chance.pick(KEYS);
    switch (
      chance.pick(['expire', 'expire', 'expire', 'scripts', 'flush', 'full', 'replica', 'marker', 'run', 'wait'])
    ) {
      case 'marker':
        return pair.operate(['DEL', MARKER], ({ data }) => void data.forget(MARKER));
      // As in data that a server has loaded from an earlier run, and when a wait ends.
      case 'run':
        return this.setMarker('run', 'f'.repeat(40));
      case 'wait':
        return this.setMarker('from', '1');
      case 'expire':
        return pair.operate(['PEXPIRE', key, '-1'], ({ data }) => void data.forget(key));
      case 'scripts':
        return pair.operate(['SCRIPT', 'FLUSH'], ({ scripts }) => scripts.clear());
      case 'flush':
        return pair.operate(['FLUSHALL'], ({ data }) => data.clear());
      case 'full':
        return this.during(['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0'], 'full');
      default:
        return this.during(['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE'], 'replica');
    }
  }

  private async setMarker(field: string, value: string): Promise<undefined> {
    if (!this.pair.simulated.data.exists(MARKER)) return;
    await this.pair.operate(['HSET', MARKER, field, value], ({ data }) => data.hset(MARKER, field, value));
  }

  private async during(
    begin: readonly string[],
    end: readonly string[],
    state: 'full' | 'replica',
  ): Promise<object | undefined> {
    const { pair } = this;
    await pair.operate(begin, (simulated) => {
      if (state === 'full') simulated.data.isFull = true;
      else simulated.demote();
    });
    const outcomes = [await this.request(), await this.identify(), await this.request(), await this.request()];
    await pair.operate(end, (simulated) => {
      simulated.data.isFull = false;
      simulated.promote();
    });
    const different = outcomes.find(({ real, simulated }) => real !== simulated);
    return different && { state, ...different };
  }
}

describe('The simulated server', () => {
  const cases = [1, 3, 4, 5, 6, 7, 8, 10].map((seed) => [seed, seed % 2 === 0 ? 'with' : 'without'] as const);

  it.each(cases)(
    'answers like a real one, stores the same data and wakes the same waiters (seed %i, %s a marker)',
    async (seed, mark) => {
      await using pair = await ModelPair.started();
      for (const waiter of WAITERS.slice(0, LISTENING)) await pair.listen(waiter);
      const difference = await differenceIn(new Trace(pair, new Chance(seed), mark === 'with'), pair);
      expect(difference).toBeUndefined();
      await pair.settle();
      expect(pair.heard.simulated).toEqual(pair.heard.real);
      expect(pair.heard.real.length).toBeGreaterThan(0);
    },
  );

  it.each(MODEL_FAULTS)('is noticed to differ if its model has a fault: %s', async (fault) => {
    await using pair = await ModelPair.started(new Set([fault]));
    expect(await differenceIn(new Trace(pair, new Chance(2), fault !== 'floor-ignored'), pair)).toBeDefined();
  });
});

/** The first step after which answers or data differ. */
async function differenceIn(trace: Trace, pair: ModelPair): Promise<object | undefined> {
  for (let step = 0; step < STEPS; step++) {
    const difference = await trace.step();
    if (difference) return { step, difference };
    if (step % COMPARED_EVERY > 0) continue;
    const { real, simulated } = await pair.contents();
    if (!isDeepStrictEqual(simulated, real)) return { step, contents: simulated, expected: real };
  }
  return undefined;
}
