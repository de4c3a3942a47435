// The configurations of section 11.
import { PermitsModel, type PermitsOptions } from './permits.model.js';
import { configurationsOf, type Section } from './section.js';
import { SharedModel, type SharedOptions } from './shared.model.js';
import { WakeUpsModel, type WakeUpsOptions } from './wake-ups.model.js';
import { WriterKeysModel, type WriterKeysOptions } from './writer-keys.model.js';

const shared = configurationsOf((options: SharedOptions) => new SharedModel(options), { sorted: true });
const permits = configurationsOf((options: PermitsOptions) => new PermitsModel(options), { sorted: true });
const wakeUps = configurationsOf((options: WakeUpsOptions) => new WakeUpsModel(options), { sorted: true });
const writerKeys = configurationsOf((options: WriterKeysOptions) => new WriterKeysModel(options));

const pair: SharedOptions = { masters: 3, shared: [2], exclusive: [2], losses: 0 };
const readers: SharedOptions = { ...pair, shared: [2, 2] };
const writers: SharedOptions = { ...pair, exclusive: [2, 2] };
const unequal: SharedOptions = { ...pair, shared: [3, 1], exclusive: [1] };

const three: PermitsOptions = { masters: 3, permits: 2, clients: [2, 2, 2], losses: 0 };

const five: WakeUpsOptions = { processes: ['shared', 'shared', 'shared', 'exclusive', 'exclusive'] };
const readerAndWriters: WakeUpsOptions = { processes: ['shared', 'exclusive', 'exclusive'] };
const twoReaders: WriterKeysOptions = { masters: 3, readers: 2, writers: 1 };
const twoWriters: WriterKeysOptions = { masters: 3, readers: 1, writers: 2 };
const four: WakeUpsOptions = { processes: ['shared', 'shared', 'exclusive', 'exclusive'] };

/** As the scripts do it. */
const MEASURED = { measured: true, without: ['a reservation does not pass the writer key'] } as const;

function threeTicks(options: SharedOptions): SharedOptions {
  const ticks = (ttls: readonly number[]): number[] => ttls.map(() => 3);
  return { ...options, shared: ticks(options.shared), exclusive: ticks(options.exclusive) };
}

export const sharedSections: readonly Section[] = [
  {
    title: 'Shared: one exclusive holder, or any number of shared ones (section 11)',
    holds: [
      ...shared.holds(threeTicks(pair), {
        'shared and exclusive, T = 3, two losses': { losses: 2, lossy: true, quick: true },
      }),
      ...shared.holds(threeTicks(readers), { 'two shared and one exclusive, T = 3': { lossy: true } }),
      ...shared.holds(readers, {
        'two shared and one exclusive, reservations, one loss': { losses: 1, reservations: true, lossy: true },
        'two shared and one exclusive, reservations and writer keys, one loss': {
          losses: 1,
          reservations: true,
          writerKeys: true,
        },
      }),
      ...shared.holds(threeTicks(writers), {
        'two exclusive and one shared, T = 3, one loss': { losses: 1, lossy: true },
      }),
      ...shared.holds(writers, {
        'two exclusive and one shared, reservations, one loss': {
          losses: 1,
          reservations: true,
          lossy: true,
          quick: true,
        },
        'two exclusive and one shared, reservations and writer keys, one loss': {
          losses: 1,
          reservations: true,
          writerKeys: true,
        },
      }),
      ...shared.holds(unequal, {
        'shared with T = 3 and T = 1, and one exclusive': { exclusive: [2], lossy: true, quick: true },
      }),
      ...shared.holds(pair, {
        'three shared and one exclusive, T = 3': { shared: [3, 3, 3], exclusive: [3] },
        'two shared and two exclusive, T = 3, one loss': { shared: [3, 3], exclusive: [3, 3], losses: 1 },
      }),
      ...shared.holds(readers, { 'five masters, two shared and one exclusive, two losses': { masters: 5, losses: 2 } }),
    ],
    breaks: [
      ...shared.breaks(pair, {
        'heal over a string':
          'X counts m3, where S puts its member in its place; S ends up on m1 and m3, X takes m2 and counts m3',
        'heal over a set':
          'S counts m1, where X puts its string in its place; X releases; S has m2 and counts m1; X takes m1 and m3',
      }),
      ...shared.breaks(readers, {
        'release by DEL': 'T gives its attempt up and deletes the member of S on m1; X takes m1 and m3',
      }),
      ...shared.breaks(unequal, {
        'expiry relative to the last request':
          'T, with the shorter ttl, joins S on m1: the key is gone before S is; X takes m1 and m3',
        'expiry that only grows':
          'S, with the longer ttl, joins T and leaves: if T crashes, its key blocks for the ttl of S',
      }),
      ...shared.breaks(pair, {
        'no guard after a loss': {
          losses: 1,
          quarantine: 0,
          story: 'S on m1 and m2; m1 loses its data; X on m1 and m3',
        },
        'quarantine shorter than the ttl': { losses: 1, quarantine: 1, story: 'the same, one tick later' },
      }),
    ],
  },
  {
    title: 'Permits: as many holders as slots (section 11)',
    holds: permits.holds(three, {
      'two permits, three clients, T = 2, one loss': { losses: 1, lossy: true },
      'two permits, three clients, T = 3, two losses': { clients: [3, 3, 3], losses: 2, quick: true },
      'two permits, four clients, one loss': { clients: [2, 2, 2, 2], losses: 1, quick: true },
      'three permits, four clients': { permits: 3, clients: [2, 2, 2, 2] },
      'two permits, three clients, five masters': { masters: 5 },
    }),
    breaks: permits.breaks(three, {
      'a counter of two on each master': 'A on m1 and m2, B on m1 and m3, C on m2 and m3: three holders of two permits',
      'no guard after a loss': {
        losses: 1,
        quarantine: 0,
        story: 'A has slot 0 on m1 and m2; m1 loses its data; B has slot 0 on m1 and m3',
      },
    }),
  },
  {
    title: 'Wake-ups at the home master: none is lost (Protocol 11.5, 11.6 and 11.7)',
    holds: [
      ...wakeUps.holds(four, { 'two shared and two exclusive': { quick: true } }),
      ...wakeUps.holds(five, { 'three shared and two exclusive': { quick: true } }),
      ...wakeUps.holds(five, { 'four shared and two exclusive': { processes: ['shared', ...five.processes] } }),
      ...wakeUps.holds(readerAndWriters, {
        'one shared and two exclusive, ages measured anew': { ...MEASURED, quick: true },
      }),
      ...wakeUps.holds(four, { 'two shared and two exclusive, ages measured anew': { ...MEASURED } }),
    ],
    breaks: [
      ...wakeUps.breaks(four, {
        'a leave wakes only if it had a reservation':
          'S holds, X and then T wait; X stops waiting, and T stays asleep behind a shared holder',
        'one shared waiter without the chain': 'S and T wait for X; X releases; S holds, and T stays asleep behind it',
        'no wake-up after a shared request was deferred at a free key':
          'Y, woken and slow, comes back and is refused by a set; S releases it while a member is reserved for T; the ' +
          'reservation expires, and T is deferred for Y: both sleep at a free key',
        'a wake-up compares the queues and not the writer key':
          'X is woken and slow, so that it is in no queue; S comes, is deferred for X, and is woken at once',
        'a waiter that does not listen ends the wake-up':
          'S crashes in the queue; the release of X notifies S and nothing else',
        'a shared waiter that does not listen keeps its reservation':
          'S crashes in the queue, and its reservation hides the free key from Y; nothing happens when it expires',
      }),
      ...wakeUps.breaks(readerAndWriters, {
        'a shared head of the queue that is deferred ends the wake-up': {
          ...MEASURED,
          story: 'S waits behind X, whose next request is slow: X is behind S in the queue, and its key is older',
        },
      }),
      ...wakeUps.breaks(four, {
        'a shared waiter that is deferred keeps its reservation': {
          ...MEASURED,
          story:
            'T is woken before Y, but is deferred for it when it asks; nothing happens when its reservation expires',
        },
        'no writer key': 'S holds, X waits, and T joins S',
        'another writer replaces the key':
          'S holds, X waits; T comes, is deferred, and waits; Y comes later, and its key does not defer T',
        'a writer that ends removes the key of another': 'S holds, X and Y wait; Y stops waiting, and T joins S',
        'the key outlasts its writer': 'S holds, X waits and stops; T is deferred by a key that no writer will remove',
        'the key of a crashed writer stays': 'S holds, X waits and crashes; T is deferred for ever',
      }),
    ],
  },
  {
    title: 'Writer keys: readers that come later do not pass a writer whose key stands (Protocol 11.6)',
    holds: [
      ...writerKeys.holds(twoReaders, { 'two readers and one writer': { quick: true } }),
      ...writerKeys.holds(twoWriters, { 'one reader and two writers': { quick: true } }),
    ],
    breaks: writerKeys.breaks(twoReaders, {
      'writer key on the home master only': 'the key is on m1, and T takes m2 and m3',
      'a free key is granted in spite of the writer key': 'S has only m1, and T takes m2 and m3, where the key is',
    }),
  },
  {
    title: 'Questions k to p: what section 11 leaves open',
    holds: [
      ...wakeUps.holds(five, {
        'k: no wake-up after a shared grant to a waiter': { without: ['no wake after a shared grant'] },
        'l: repair: a shared request at the home master is deferred for the queue, too': {
          without: ['every exclusive waiter defers', 'the queue defers'],
        },
        'o: repair: a reservation does not pass the writer key': {
          without: ['a reservation is no excuse', 'a reservation does not pass the writer key'],
        },
      }),
      ...writerKeys.holds(twoWriters, {
        'p: a reader later than two writers, whose keys together stand on a quorum, passes neither': {
          without: ['the keys of two writers make a quorum'],
        },
      }),
    ],
    breaks: [
      ...wakeUps.breaks(four, {
        'm: a writer that a string has refused defers readers before its next poll': {
          without: ['every exclusive waiter defers'],
          story: 'S and then Y wait for X; X releases and S is woken; T comes and joins S before Y has a writer key',
        },
        'o: not even a shared request with a reservation passes a writer': {
          without: ['a reservation is no excuse'],
          story: 'Y is woken and slow; S holds and wakes T; Y, older, writes its key; T joins S with its reservation',
        },
      }),
      ...writerKeys.breaks(twoReaders, {
        'n: the writer key stands on a quorum, but not on the same one': {
          without: ['any quorum at any time'],
          story: 'T takes m3 while the key is on m1 and m2; then it is on m2 and m3, and T takes m1',
        },
      }),
    ],
  },
];
