// The configurations of section 8.
import { type GateFault, GateModel, type GateOptions } from './gate.model.js';
import { configurationsOf, type Section } from './section.js';

const gate = configurationsOf((options: GateOptions) => new GateModel(options));

const ANY: readonly GateFault[] = ['empty restart', 'stale restart', 'flush', 'kept restart'];
const ALL: readonly GateFault[] = [...ANY, 'marker deleted', 'spare', 'return', 'all lost'];

const twoTicks: GateOptions = { masters: 3, ttls: [2, 2], faults: ANY, maxFaults: 1 };
const oneTick: GateOptions = { ...twoTicks, ttls: [1, 1] };
const spares: GateOptions = { ...oneTick, faults: ['spare', 'return'], maxFaults: 4, oneAttempt: true };
const detours: GateOptions = { ...oneTick, faults: ['detour'], maxFaults: 2, addresses: true, oneAttempt: true };
const unequal: GateOptions = { ...twoTicks, ttls: [2, 1], maxTtls: [2, 2], maxFaults: 2 };
const lemma: GateOptions = { ...twoTicks, lemma: true, faults: ALL };
const prompt: GateOptions = { ...twoTicks, noClients: true, prompt: true, strict: true, maxFaults: 2 };

export const gateSections: readonly Section[] = [
  {
    title: 'Gate: at no instant two clients believe (section 8)',
    holds: [
      ...gate.holds(twoTicks, {
        'one fault of any master, T = 2': { quick: true },
        'two faults of any master, T = 2': { maxFaults: 2 },
        'one fault of any master, T = 3': { ttls: [3, 3], late: true },
        'one master, three faults, T = 2': { masters: 1, maxFaults: 3, quick: true },
        'two masters, two faults, T = 2': { masters: 2, maxFaults: 2, quick: true },
      }),
      ...gate.holds(oneTick, {
        'two faults of any master, T = 1': { maxFaults: 2, quick: true },
        'three faults of any master, T = 1, L does not extend': { maxFaults: 3, oneAttempt: true },
        'two masters, three older copies, T = 1, L does not extend': {
          masters: 2,
          faults: ['stale restart'],
          maxFaults: 3,
          oneAttempt: true,
          quick: true,
        },
        'five masters, one fault, T = 1': { masters: 5 },
        'five masters, two empty restarts, T = 1, L does not extend': {
          masters: 5,
          faults: ['empty restart'],
          maxFaults: 2,
          oneAttempt: true,
        },
        'all masters lose their data at once, and one fault more, T = 1': {
          faults: ['all lost', ...ANY],
          maxFaults: 2,
        },
        'the marker alone is deleted, and older copies, T = 1': {
          faults: ['marker deleted', 'stale restart'],
          maxFaults: 2,
          quick: true,
        },
        'one fault, answers are lost, T = 1': { lostAnswers: true, quick: true },
      }),
      ...gate.holds(spares, { 'spares serve at addresses; the masters return in new processes': {} }),
    ],
    breaks: [
      ...gate.breaks(oneTick, {
        'the marker is not looked at': 'm1 is flushed, and votes at once',
        '`from` is not compared': 'm1 is flushed and marked, and votes at once',
        'a marker is enough, whatever its run': 'm1 restarts with an older copy',
        'no marker is like a marker': 'm1 is flushed, and votes at once',
        'the first call over a connection does not compare': 'm1 restarts with an older copy, and grants to X',
        'calls may be executed before the first one over their connection':
          'm1 restarts with an older copy; the attempt of X arrives before the call that compares',
        'an error counts as the answer to the first call':
          'm1 restarts with an older copy; the first call of X meets an error, and its attempt finds the old marker',
      }),
      ...gate.breaks(twoTicks, {
        'the quarantine is shorter than the ttl': {
          maxTtls: [1, 1],
          story: 'm1 restarts without data, and votes for X while L believes',
        },
        'a heal counts on a quarantined master':
          'X is granted by m3, which loses its data; L heals m3 and believes on; X takes m1',
        'a present key counts on a quarantined master, and heals are refused':
          'an older copy shows the key of L with its full ttl',
        'a present key counts on a quarantined master, and heals are set': 'the heal makes the key present',
        'an extension shortens the key': {
          late: true,
          maxFaults: 0,
          story: 'a late extension with a shorter ttl cuts the key on m1 and m2, and X takes them while L believes',
        },
      }),
      ...gate.breaks(spares, {
        'a master returns in its old process': {
          faults: ['spare', 'live return'],
          story: 'a limit: its marker is right, and the locks that its spare granted are missing',
        },
      }),
      ...gate.breaks(oneTick, {
        'connections outlive their server': 'a limit: over the connection that a proxy has kept, nothing is compared',
      }),
    ],
  },
  {
    title: 'Gate: one maxTtl for all (Protocol 8.1)',
    holds: gate.holds(unequal, {
      'L has ttl 2 and X ttl 1, and both mark for 2; two losses': { faults: ['flush'], quick: true },
      'L has ttl 2 and X ttl 1, and both mark for 2; all masters lose their data, twice': { faults: ['all lost'] },
    }),
    breaks: gate.breaks(unequal, {
      'each process marks for a maxTtl of its own': {
        maxTtls: [2, 1],
        faults: ['flush'],
        story: 'm1 is flushed, and X marks for 1; the key of L counts for 2',
      },
    }),
  },
  {
    title: 'Gate: one server counts once (Protocol 8.5)',
    holds: gate.holds(detours, {
      'the address of a master leads to another master, and back, T = 1': { quick: true },
      'the address of a master leads to another master, and back, T = 2': { ttls: [2, 2] },
      'the address of a master leads to a spare for good, T = 2': {
        ttls: [2, 2],
        maxFaults: 1,
        spareServer: true,
        quick: true,
      },
    }),
    breaks: gate.breaks(detours, {
      'one server counts for two masters': 'X gets m2 through two addresses',
      'a new connection joins a round under way': {
        ttls: [2, 2],
        story: 'm3 has counted for X; the address of m1 leads to m3, which counts again',
      },
      'the address of a master leads to a spare, and back': {
        ttls: [2, 2],
        spareServer: true,
        quick: false,
        story: 'a limit: X has the spare and m3; m1, which has run on, is back without that lock',
      },
    }),
  },
  {
    title: 'Gate: a connection that has compared never meets the marker of another run (Protocol 8.4)',
    holds: gate.holds(lemma, {
      'one master, four faults of all kinds': { masters: 1, maxFaults: 4, quick: true },
      'two masters, three faults of all kinds': { masters: 2, maxFaults: 3, quick: true },
      'three masters, two faults of all kinds': { maxFaults: 2, quick: true },
    }),
    breaks: [],
  },
  {
    title: 'Gate: all masters vote maxTtl after the last fault',
    holds: [
      ...gate.holds(prompt, {
        'two faults': { quick: true },
        'all masters lose their data at once, and one fault more': { faults: ['all lost', ...ANY], quick: true },
        'first boot': { faults: [], maxFaults: 0, firstBoot: true, quick: true },
      }),
      ...gate.holds(oneTick, { 'with clients, one fault, T = 1': { prompt: true, quick: true } }),
    ],
    breaks: gate.breaks(prompt, {
      'a call that finds no marker is refused, and does not compare': 'm1 is flushed, and no connection compares again',
      'a marker of this run is written anew before its `from`': {
        strict: false,
        story: 'a hot loop of calls that compare keeps m1 out for ever',
      },
    }),
  },
];
