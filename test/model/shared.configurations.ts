// The configurations of section 11.
import { BarrierModel, type BarrierOptions } from './barrier.model.js';
import { type Model } from './checker.js';
import { PermitsModel, type PermitsOptions } from './permits.model.js';
import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';
import { SharedModel, type SharedOptions } from './shared.model.js';
import { WakeUpsModel, type WakeUpsOptions } from './wake-ups.model.js';

const pair: SharedOptions = { masters: 3, shared: [2], exclusive: [2], losses: 0 };
const readers: SharedOptions = { ...pair, shared: [2, 2] };
const writers: SharedOptions = { ...pair, exclusive: [2, 2] };
const unequal: SharedOptions = { ...pair, shared: [3, 1], exclusive: [1] };

const shared: Section = {
  title: 'Shared: one exclusive holder, or any number of shared ones (section 11)',
  holds: [
    sharedHolds('shared and exclusive, T = 3, two losses', { ...threeTicks(pair), losses: 2, lossy: true }, true),
    sharedHolds('two shared and one exclusive, T = 3', { ...threeTicks(readers), lossy: true }),
    sharedHolds('two shared and one exclusive, reservations, one loss', {
      ...readers,
      losses: 1,
      reservations: true,
      lossy: true,
    }),
    sharedHolds('two shared and one exclusive, reservations and `want`, one loss', {
      ...readers,
      losses: 1,
      reservations: true,
      barrier: true,
    }),
    sharedHolds('two exclusive and one shared, T = 3, one loss', { ...threeTicks(writers), losses: 1, lossy: true }),
    sharedHolds(
      'two exclusive and one shared, reservations, one loss',
      { ...writers, losses: 1, reservations: true, lossy: true },
      true,
    ),
    sharedHolds('two exclusive and one shared, reservations and `want`, one loss', {
      ...writers,
      losses: 1,
      reservations: true,
      barrier: true,
    }),
    sharedHolds('shared with T = 3 and T = 1, and one exclusive', { ...unequal, exclusive: [2], lossy: true }, true),
    sharedHolds('three shared and one exclusive, T = 3', { ...pair, shared: [3, 3, 3], exclusive: [3] }),
    sharedHolds('two shared and two exclusive, T = 3, one loss', {
      ...pair,
      shared: [3, 3],
      exclusive: [3, 3],
      losses: 1,
    }),
    sharedHolds('five masters, two shared and one exclusive, two losses', { ...readers, masters: 5, losses: 2 }),
  ],
  breaks: [
    sharedBreaks('heal over a string', {
      ...pair,
      without: ['heal over a string'],
      story: 'X counts m3, where S puts its member in its place; S ends up on m1 and m3, X takes m2 and counts m3',
    }),
    sharedBreaks('heal over a set', {
      ...pair,
      without: ['heal over a set'],
      story: 'S counts m1, where X puts its string in its place; X releases; S has m2 and counts m1; X takes m1 and m3',
    }),
    sharedBreaks('release by DEL', {
      ...readers,
      without: ['release by DEL'],
      story: 'T gives its attempt up and deletes the member of S on m1; X takes m1 and m3',
    }),
    sharedBreaks('expiry relative to the last request', {
      ...unequal,
      without: ['relative expiry'],
      story: 'T, with the shorter ttl, joins S on m1: the key is gone before S is; X takes m1 and m3',
    }),
    sharedBreaks('expiry that only grows', {
      ...unequal,
      without: ['only-growing expiry'],
      story: 'S, with the longer ttl, joins T and leaves: if T crashes, its key blocks for the ttl of S',
    }),
    sharedBreaks('no guard after a loss', {
      ...pair,
      losses: 1,
      quarantine: 0,
      story: 'S on m1 and m2; m1 loses its data; X on m1 and m3',
    }),
    sharedBreaks('quarantine shorter than the ttl', {
      ...pair,
      losses: 1,
      quarantine: 1,
      story: 'the same, one tick later',
    }),
  ],
};

const three: PermitsOptions = { masters: 3, permits: 2, clients: [2, 2, 2], losses: 0 };

const permits: Section = {
  title: 'Permits: as many holders as slots (section 11)',
  holds: [
    permitsHold('two permits, three clients, T = 2, one loss', { ...three, losses: 1, lossy: true }),
    permitsHold('two permits, three clients, T = 3, two losses', { ...three, clients: [3, 3, 3], losses: 2 }, true),
    permitsHold('two permits, four clients, one loss', { ...three, clients: [2, 2, 2, 2], losses: 1 }, true),
    permitsHold('three permits, four clients', { ...three, permits: 3, clients: [2, 2, 2, 2] }),
    permitsHold('two permits, three clients, five masters', { ...three, masters: 5 }),
  ],
  breaks: [
    permitsBreak('a counter of two on each master', {
      ...three,
      without: ['counter on each master'],
      story: 'A on m1 and m2, B on m1 and m3, C on m2 and m3: three holders of two permits',
    }),
    permitsBreak('no guard after a loss', {
      ...three,
      losses: 1,
      quarantine: 0,
      story: 'A has slot 0 on m1 and m2; m1 loses its data; B has slot 0 on m1 and m3',
    }),
  ],
};

const five: WakeUpsOptions = { processes: ['shared', 'shared', 'shared', 'exclusive', 'exclusive'] };
const readerAndWriters: WakeUpsOptions = { processes: ['shared', 'exclusive', 'exclusive'] };
const four: WakeUpsOptions = { processes: ['shared', 'shared', 'exclusive', 'exclusive'] };

/** As the scripts do it. */
const MEASURED = { measured: true, without: ['a reservation does not pass the barrier'] } as const;

const wakeUps: Section = {
  title: 'Wake-ups at the home master: none is lost (Protocol 11.5, 11.6 and 11.7)',
  holds: [
    wakeUpsHold('two shared and two exclusive', four, true),
    wakeUpsHold('three shared and two exclusive', five, true),
    wakeUpsHold('four shared and two exclusive', { processes: ['shared', ...five.processes] }),
    wakeUpsHold('one shared and two exclusive, ages measured anew', { ...readerAndWriters, ...MEASURED }, true),
    wakeUpsHold('two shared and two exclusive, ages measured anew', { ...four, ...MEASURED }),
  ],
  breaks: [
    wakeUpsBreak('a leave wakes only if it had a reservation', {
      ...four,
      without: ['a leave wakes only if it had a reservation'],
      story: 'S holds, X and then T wait; X stops waiting, and T stays asleep behind a shared holder',
    }),
    wakeUpsBreak('one shared waiter without the chain', {
      ...four,
      without: ['one shared waiter without the chain'],
      story: 'S and T wait for X; X releases; S holds, and T stays asleep behind it',
    }),
    wakeUpsBreak('no wake-up after a shared request was deferred at a free key', {
      ...four,
      without: ['no wake after a deferral'],
      story:
        'Y, woken and slow, comes back and is refused by a set; S releases it while a member is reserved for T; the ' +
        'reservation expires, and T is deferred for Y: both sleep at a free key',
    }),
    wakeUpsBreak('a wake-up compares the queues and not `want`', {
      ...four,
      without: ['a wake-up compares the queues only'],
      story: 'X is woken and slow, so that it is in no queue; S comes, is deferred for X, and is woken at once',
    }),
    wakeUpsBreak('a waiter that does not listen ends the wake-up', {
      ...four,
      without: ['a waiter that does not listen ends the wake-up'],
      story: 'S crashes in the queue; the release of X notifies S and nothing else',
    }),
    wakeUpsBreak('a shared waiter that does not listen keeps its reservation', {
      ...four,
      without: ['an unheard reservation stays'],
      story: 'S crashes in the queue, and its reservation hides the free key from Y; nothing happens when it expires',
    }),
    wakeUpsBreak('a shared head of the queue that is deferred ends the wake-up', {
      ...readerAndWriters,
      measured: true,
      without: [...MEASURED.without, 'a deferred head ends the wake-up'],
      story: 'S waits behind X, whose next request is slow: X is behind S in the queue and before it at the barrier',
    }),
    wakeUpsBreak('a shared waiter that is deferred keeps its reservation', {
      ...four,
      measured: true,
      without: [...MEASURED.without, 'a deferred waiter keeps its reservation'],
      story: 'T is woken before Y, but is deferred for it when it asks; nothing happens when its reservation expires',
    }),
    wakeUpsBreak('no barrier', {
      ...four,
      without: ['no barrier'],
      story: 'S holds, X waits, and T joins S',
    }),
  ],
};

const barrier: Section = {
  title: 'Barrier: readers that come later do not pass a waiting writer (Protocol 11.6)',
  holds: [barrierHolds('two readers and one writer, `want` on all masters', { masters: 3, readers: 2 }, true)],
  breaks: [
    barrierBreaks('barrier on the home master only', {
      masters: 3,
      readers: 2,
      without: ['barrier on the home master only'],
      story: '`want` is on m1, and T takes m2 and m3',
    }),
    barrierBreaks('a free key is granted in spite of `want`', {
      masters: 3,
      readers: 2,
      without: ['a free key is granted'],
      story: 'S has only m1, and T takes m2 and m3, where `want` is',
    }),
  ],
};

const questions: Section = {
  title: 'Questions k to o: what section 11 leaves open',
  holds: [
    wakeUpsHold('k: no wake-up after a shared grant to a waiter', {
      ...five,
      without: ['no wake after a shared grant'],
    }),
    wakeUpsHold('l: repair: a shared request at the home master is deferred for the queue, too', {
      ...five,
      without: ['every exclusive waiter is a barrier', 'the queue is a barrier'],
    }),
    wakeUpsHold('o: repair: a reservation does not pass the barrier', {
      ...five,
      without: ['a reservation is no excuse', 'a reservation does not pass the barrier'],
    }),
  ],
  breaks: [
    wakeUpsBreak('m: a writer that a string has refused is a barrier before its next poll', {
      ...four,
      without: ['every exclusive waiter is a barrier'],
      story: 'S and then Y wait for X; X releases and S is woken; T comes and joins S before Y has written `want`',
    }),
    wakeUpsBreak('o: not even a shared request with a reservation passes a writer', {
      ...four,
      without: ['a reservation is no excuse'],
      story: 'Y is woken and slow; S holds and wakes T; Y, older, writes `want`; T joins S with its reservation',
    }),
    barrierBreaks('n: `want` stands on a quorum, but not on the same one', {
      masters: 3,
      readers: 2,
      without: ['any quorum at any time'],
      story: 'T takes m3 while `want` is on m1 and m2; then `want` is on m2 and m3, and T takes m1',
    }),
  ],
};

export const sharedSections: readonly Section[] = [shared, permits, wakeUps, barrier, questions];

function threeTicks(options: SharedOptions): SharedOptions {
  const ticks = (ttls: readonly number[]): number[] => ttls.map(() => 3);
  return { ...options, shared: ticks(options.shared), exclusive: ticks(options.exclusive) };
}

function holds(name: string, model: () => Model, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model };
}

function breaks(name: string, { story, slow }: Story, model: () => Model): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model };
}

function sharedHolds(name: string, options: SharedOptions, quick = false): Configuration {
  return holds(name, () => new SharedModel({ ...options, sorted: true }), quick);
}

function sharedBreaks(name: string, options: SharedOptions & Story): Weakened {
  return breaks(name, options, () => new SharedModel(options));
}

function permitsHold(name: string, options: PermitsOptions, quick = false): Configuration {
  return holds(name, () => new PermitsModel({ ...options, sorted: true }), quick);
}

function permitsBreak(name: string, options: PermitsOptions & Story): Weakened {
  return breaks(name, options, () => new PermitsModel(options));
}

function wakeUpsHold(name: string, options: WakeUpsOptions, quick = false): Configuration {
  return holds(name, () => new WakeUpsModel({ ...options, sorted: true }), quick);
}

function wakeUpsBreak(name: string, options: WakeUpsOptions & Story): Weakened {
  return breaks(name, options, () => new WakeUpsModel(options));
}

function barrierHolds(name: string, options: BarrierOptions, quick = false): Configuration {
  return holds(name, () => new BarrierModel(options), quick);
}

function barrierBreaks(name: string, options: BarrierOptions & Story): Weakened {
  return breaks(name, options, () => new BarrierModel(options));
}
