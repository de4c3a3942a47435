// The simulation is only useful if the simulated server behaves like a real one. Both get the same commands.
import { BARRIER } from '../../lib/core/keyspace.js';
import { describe, expect, it } from '@jest/globals';
import { RequestEncoder, type ServerRequest } from '../../lib/redis/request-encoding.js';
import { REVOKED, signatureOf } from '../../lib/core/holder.js';
import { MARKER_FIELDS } from '../../lib/redis/guard/marker.js';
import { boundScript } from '../../lib/redis/scripts/bound-script.js';
import { MARK, REPORT, STATE } from '../../lib/redis/scripts/lua.generated.js';
import { Chance } from './engine/chance.js';
import { ModelPair } from './model-pair.js';
import { rawMarker } from './server/operations.js';

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

/** A trace of random commands. */
class Trace {
  private nonce = '';
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
      await this.operate();
      return undefined;
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
      return pair.call('SET', [chance.pick(KEYS), chance.pick(TOKENS), 'PX', LONG, 'NX']);
    }
    const requests = Array.from({ length: chance.whole(1, 3) }, () => this.anyRequest());
    const history = chance.pick(['', '', pair.simulated.replid, 'another']);
    const mark = marked ? [MARKER, this.nonce, history] : ['', '', ''];
    const args = [0, ...mark, 'fences', ...new RequestEncoder().encode(requests, true)];
    const outcome = await pair.run(boundScript('run'), args);
    // The timestamp of an announcement comes from the server's own clock.
    await pair.adopt(MARKER, 'ttls');
    return { ...outcome, command: requests.map(({ op }) => op).join(' ') };
  }

  private async state() {
    const { chance, pair, marked } = this;
    const { run, replid, data } = pair.simulated;
    const op = chance.pick(['open-state', 'open-state', 'write-state', 'write-state', 'read-state']);
    const generation = chance.happens(0.9) ? (data.hget(MARKER, 'generation') ?? '') : 'another';
    const server = marked ? [MARKER, run, chance.happens(0.9) ? replid : 'another', generation] : ['', '', '', ''];
    const entry = chance.pick(STATES);
    const ballot = [chance.pick([9, 10, 1e15 + chance.whole(0, 3)]).toFixed(0), chance.pick(['a', 'b'])];
    const holder = [chance.pick(KEYS), chance.pick(TOKENS), LONG, ...ballot];
    const write = [...holder, chance.pick([9, 10]), chance.pick(['', '{"a b":"c\\nd"}'])];
    const rest = { 'open-state': holder, 'write-state': write, 'read-state': [] }[op] ?? [];
    const outcome = await pair.call('EVAL', [STATE, 0, op, ...server, entry, ...rest]);
    // The time of a write comes from the server's own clock.
    await pair.adoptText(entry);
    return { ...outcome, command: op };
  }

  private anyRequest(): ServerRequest {
    const { chance } = this;
    const keys = chance.pick([['a'], ['b'], KEYS]);
    const queues = keys.map((key) => `queue:${key}`);
    const token = chance.pick(TOKENS);
    const counters = keys.map((key) => key.charCodeAt(0));
    const ttl = LONG * chance.whole(1, 3);
    const waiter = chance.pick(WAITERS);
    const barriers = queues.map((queue) => queue + BARRIER);
    // No two waiters have waited since the same moment, however long the commands take.
    this.waited += 1_000_000;
    const waited = chance.happens(0.5) ? this.waited : 1_000_000_000 - this.waited;
    const queue = chance.happens(0.6) ? { queues, waiter, waited } : undefined;
    switch (
      chance.pick([
        ...(['share', 'share', 'share', 'prolong', 'unshare', 'unshare', 'want', 'pick'] as const),
        ...(['acquire', 'acquire', 'acquire', 'extend', 'draw', 'draw'] as const),
        ...(['release', 'release', 'leave', 'inspect', 'probe', this.marked ? 'beat' : 'inspect'] as const),
      ])
    ) {
      case 'acquire':
        return { op: 'acquire', keys, token, ttl, withdrawn: false, queue };
      case 'share':
        return { op: 'acquire', keys, token, ttl, withdrawn: false, queue, sharing: { barriers, waited } };
      case 'prolong':
        return { op: 'extend', keys, token, ttl, withdrawn: false, isShared: true };
      case 'unshare':
        return { op: 'release', keys, queues, token, keepFor: 0, ttl, isShared: true };
      case 'want':
        return { op: 'raise-barrier', keys, barriers, waiter, waited: chance.happens(0.5) ? waited : undefined };
      case 'pick': {
        const slots = chance.pick([KEYS, ['b', 'a'], ['b', 'a', 'c']]);
        return {
          op: 'pick',
          keys: slots,
          token,
          ttl,
          withdrawn: false,
          queue: queue && { ...queue, queues: ['queue:a'] },
        };
      }
      case 'extend':
        return { op: 'extend', keys, token, ttl, withdrawn: false };
      case 'draw': {
        const atLeast = chance.pick([0, chance.whole(1, 1_000_000), chance.whole(1, 1e15)]);
        return { op: 'draw', keys, token, counters, atLeast, isFirst: chance.happens(0.5) };
      }
      case 'beat': {
        const announced = chance.pick([0, 1_000, 2_000, 50_000]);
        return {
          op: 'beat',
          keys: [],
          ttl: announced,
          lengthens: chance.happens(0.5),
          factor: 1.01,
          known: chance.pick([0, 3_000]),
        };
      }
      case 'release':
        return { op: 'release', keys, queues, token, keepFor: chance.pick([0, 0, LONG]), ttl };
      case 'leave':
        return {
          ...{ op: 'leave', keys, queues, waiter, isShared: chance.happens(0.5) },
          nextWaited: chance.happens(0.3) ? waited : undefined,
        };
      case 'inspect':
        return { op: 'inspect', keys, queues };
      case 'probe':
        return { op: 'probe', keys: ['probed'] };
    }
  }

  private identify() {
    const { chance, pair } = this;
    if (chance.happens(0.5)) return pair.call('EVAL', [REPORT, 1, MARKER]);
    const { run, replid, data } = pair.simulated;
    const nonce = `nonce${chance.whole(1, 1_000_000)}`;
    const isWhole = chance.happens(0.5);
    const isAnnounced = (index: number): boolean => ['ttls', 'known'].includes(MARKER_FIELDS[index] as string);
    const stored = rawMarker(data, MARKER).map((value, index) => (isWhole || !isAnnounced(index) ? value : ''));
    const raw = chance.happens(0.8) ? stored.join('\n') : 'another';
    const whose = chance.happens(0.9) ? run : 'f'.repeat(40);
    const history = chance.happens(0.9) ? replid : 'f'.repeat(40);
    // Read at any time, or too long ago.
    const readAt = chance.happens(0.9) ? '' : 1;
    if (raw !== 'another' && whose === run && history === replid && readAt === '') this.nonce = nonce;
    const state = ['generation', `${nonce}@1`, 'first', chance.pick(['', '1'])];
    const fields = [
      ...state,
      'run',
      run,
      'replid',
      replid,
      'nonce',
      nonce,
      'from',
      4e12,
      'vetoed',
      1,
      'why',
      'two words',
    ];
    return pair.call('EVAL', [MARK, 1, MARKER, whose, history, readAt, isWhole ? 1 : 0, raw, ...fields]);
  }

  private async operate(): Promise<void> {
    const { chance, pair } = this;
    const key = chance.pick(KEYS);
    switch (chance.pick(['expire', 'expire', 'expire', 'scripts', 'flush', 'full', 'replica'])) {
      case 'expire':
        return pair.operate(['PEXPIRE', key, '-1'], ({ data }) => void data.forget(key));
      case 'scripts':
        return pair.operate(['SCRIPT', 'FLUSH'], ({ scripts }) => scripts.clear());
      case 'flush':
        this.nonce = '';
        return pair.operate(['FLUSHALL'], ({ data }) => data.clear());
      case 'full':
        return this.during(['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0'], 'full');
      default:
        return this.during(['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE'], 'replica');
    }
  }

  private async during(begin: readonly string[], end: readonly string[], state: 'full' | 'replica'): Promise<void> {
    const { pair } = this;
    await pair.operate(begin, (simulated) => {
      if (state === 'full') simulated.data.isFull = true;
      else simulated.demote();
    });
    const outcomes = [await this.request(), await this.request(), await this.request()];
    for (const { real, simulated, command } of outcomes) {
      expect({ state, command, answer: simulated }).toEqual({ state, command, answer: real });
    }
    await pair.operate(end, (simulated) => {
      simulated.data.isFull = false;
      simulated.promote();
    });
  }
}

describe('The simulated server', () => {
  const cases = [1, 3, 4, 5, 6, 7, 8, 10].map((seed) => [seed, seed % 2 === 0 ? 'with' : 'without'] as const);

  it.each(cases)(
    'answers like a real one, stores the same data and wakes the same waiters (seed %i, %s a marker)',
    async (seed, mark) => {
      await using pair = await ModelPair.started();
      for (const waiter of WAITERS.slice(0, LISTENING)) await pair.listen(waiter);
      const trace = new Trace(pair, new Chance(seed), mark === 'with');
      for (let step = 0; step < STEPS; step++) {
        expect({ step, difference: await trace.step() }).toEqual({ step, difference: undefined });
        if (step % COMPARED_EVERY > 0) continue;
        // What was announced while the server was full.
        await pair.adopt(MARKER, 'ttls');
        const { real, simulated } = await pair.contents();
        expect({ step, contents: simulated }).toEqual({ step, contents: real });
      }
      await pair.settle();
      expect(pair.heard.simulated).toEqual(pair.heard.real);
      expect(pair.heard.real.length).toBeGreaterThan(0);
    },
  );
});
