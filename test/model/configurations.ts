import { clusterSections } from './cluster.configurations.js';
import { doubtSections } from './doubt.configurations.js';
import { GuardModel, type GuardOptions } from './guard.model.js';
import { InstallationModel, type InstallationOptions } from './installation.model.js';
import { MaxTtlModel, type MaxTtlOptions } from './max-ttl.model.js';
import { ResourceStateModel, type ResourceStateOptions } from './resource-state.model.js';
import { configurationsOf, type Section } from './section.js';
import { sentinelSections } from './sentinel.configurations.js';
import { sharedSections } from './shared.configurations.js';
import { standstillSections } from './standstill.configurations.js';
import { TokensModel, type TokensOptions } from './tokens.model.js';

const guard = configurationsOf((options: GuardOptions) => new GuardModel(options));
const installation = configurationsOf((options: InstallationOptions) => new InstallationModel(options));
const tokens = configurationsOf((options: TokensOptions) => new TokensModel(options));
const maxTtl = configurationsOf((options: MaxTtlOptions) => new MaxTtlModel(options));
const state = configurationsOf((options: ResourceStateOptions) => new ResourceStateModel(options), { sorted: true });

const anyFault = ['empty restart', 'stale restart', 'flush', 'failback'] as const;
const oneFault: GuardOptions = { masters: 3, ttl: 2, wait: 2, faults: anyFault, maxFaults: 1 };
/** One lock is enough: an extension before the loss amounts to a later attempt, and one after it counts on no master. */
const cutOff: GuardOptions = {
  ...oneFault,
  ...{ ttl: 3, wait: 3, faults: ['all lost'] },
  early: { contactEvery: 1, wait: 2 },
  oneAttempt: true,
};
const live: GuardOptions = {
  ...{ masters: 3, ttl: 3, wait: 3, maxFaults: 2 },
  faults: [...anyFault, 'warm spare', 'all lost'],
  prompt: { within: 3, voting: 3, holder: false },
};
const newMasters: GuardOptions = {
  ...{ masters: 3, ttl: 3, wait: 6, faults: [], maxFaults: 0 },
  newMasters: true,
  early: { contactEvery: 1, wait: 2 },
};
/** Both clients request locks as soon as they believe that a master votes. */
const busy = (voting: number): GuardOptions => ({
  ...newMasters,
  holderWrites: true,
  prompt: { within: 3, voting, holder: true },
});

const kept: GuardOptions = { ...oneFault, ttl: 1, wait: 1, maxFaults: 2 };
const replaced: GuardOptions = { ...kept, faults: ['spare', 'return'], maxFaults: 4, declared: 'met' };

/** P knew the data of all masters. */
const lost: InstallationOptions = { knows: 3, losses: 1 };

const twoClients: TokensOptions = { masters: 3, keys: [0, 0], heals: 2, lostAnswers: 1 };
const knownLoss: TokensOptions = {
  masters: 3,
  keys: [0, 0],
  heals: 1,
  lostAnswers: 0,
  loss: { losses: 1, ticks: 4, quarantine: 2, ahead: [1, 0] },
};
const undisturbed: TokensOptions = { masters: 3, keys: [0], heals: 0, lostAnswers: 0, rounds: 2 };

const raise: MaxTtlOptions = {
  ...{ ttls: [2, 1], level: 'to be raised', losses: 1 },
  ...{ use: 'all', sources: 1, noSource: 'nothing' },
};
const raised: MaxTtlOptions = { ...raise, level: 'known' };

const decay: MaxTtlOptions = {
  ...raised,
  use: 'all, or a quorum that knew it before',
  cutOff: true,
  decay: { window: 3, refresh: 1 },
};

const [set, setTwice] = [['set'], ['set', 'set']] as const;
const twoHolders: ResourceStateOptions = { masters: 3, holders: [set, set], losses: 0 };
const oneLost: ResourceStateOptions = { ...twoHolders, losses: 1 };
/** Three holders get; the first one may set. */
const twoReaders: ResourceStateOptions = { ...twoHolders, holders: [set, [], []] };

export const sections: readonly Section[] = [
  {
    title: 'Guard: a holder, a contender, and data that changes behind an address',
    holds: [
      ...guard.holds(oneFault, {
        'two faults of any master, T = 1': { ttl: 1, wait: 1, maxFaults: 2, quick: true },
        'two faults of any master, T = 2': { maxFaults: 2 },
        'one fault, T = 3': { ttl: 3, wait: 3 },
        'two warm spares, T = 2': { faults: ['warm spare'], maxFaults: 2 },
        'five masters, two lose their data, T = 1': {
          masters: 5,
          ttl: 1,
          wait: 1,
          faults: ['empty restart'],
          maxFaults: 2,
        },
      }),
      ...guard.holds(cutOff, {
        'all masters lose their data, the holder contacts one master per H': { holderWrites: true },
      }),
    ],
    breaks: [
      ...guard.breaks(oneFault, {
        'no replid in the identity': 'L on m1, m2; m2 fails back, with its marker and without the key; X on m2, m3',
        'replid compared at the handshake only': 'the same, over a connection that X had before',
        'uptime shortens the wait': {
          faults: ['warm spare'],
          story: 'the address of m1 moves to an empty spare that has been up for long: it votes at once',
        },
        'marker not checked in the voting script': 'm1 is flushed; X votes there on the word of its old handshake',
        'heal counts on a quarantined master':
          'm3 restarts empty after X counted it; L sets its key there again and believes on; X takes m1',
        'extension of a present key counts there, heals written too': {
          without: ['extension of a present key counts on a quarantined master'],
          story: 'the heal that did not count makes the key present for the next extension',
        },
        'extension of a present key counts there, heals not written': {
          without: [
            'extension of a present key counts on a quarantined master',
            'heals are not written on a quarantined master',
          ],
          story: "a stale copy shows L's key with its full ttl while X counts the master",
        },
        'wait shorter than the ttl': { wait: 1, story: 'm1 restarts empty and votes for X while L still believes' },
        'old and new process behind one address both acknowledge': {
          faults: ['two processes'],
          story: 'an assumption: the old process extends for L, the new one grants to X after its quarantine',
        },
      }),
      ...guard.breaks(cutOff, {
        'early vote by a holder': 'all data is lost; L itself lets the masters vote early; X enters with them',
        'early vote seen on a quorum only': 'L reaches only the third master, and its veto stands there unread',
        'early vote confirmed on a quorum only': 'the second reading leaves out the one master that L reaches',
        'no veto': 'L meets a young marker and leaves it as it is',
        'G not larger than H': {
          early: { contactEvery: 1, wait: 1 },
          story: 'X lets the masters vote before the next contact of L is due',
        },
        'no second reading': 'the write to the vetoed master fails, and those to the two others succeed',
        'marker whose `from` has passed counts as young': {
          faults: ['empty restart'],
          story: 'one loss: two masters that vote pass for young ones, and the third votes early',
        },
        'a refused command counts as a contact':
          'a master refuses the nonce of L within each H, and L never reads the young marker',
      }),
    ],
  },
  {
    title: 'Guard: masters that are declared durable (rule 8.8)',
    holds: [
      ...guard.holds(kept, {
        'declared: two restarts with all data, T = 2': { ttl: 2, wait: 2, faults: ['kept restart'], declared: 'met' },
        'declared: restarts with all data, without, and promotions, T = 1': {
          declared: 'met',
          faults: ['kept restart', 'empty restart', 'promoted replica'],
          quick: true,
        },
      }),
      ...guard.holds(replaced, { 'declared: two spares, which both processes meet before the masters return': {} }),
      ...guard.holds(kept, {
        'not declared: lagging copies, files that were switched off, spares, returns': {
          faults: ['kept restart', 'lagging copy', 'promoted replica', 'spare', 'return'],
        },
      }),
    ],
    breaks: [
      ...guard.breaks(kept, {
        'durability that is inferred, from `appendfsync` or a marker': {
          faults: ['lagging copy'],
          story: 'L holds m1, m2; both are started with a copy that lacks the key, and vote at once',
        },
      }),
      ...guard.breaks(replaced, {
        'declared, and another nonce is known of the address': {
          quick: false,
          story: 'L holds m1, m2, which are spares; the masters from before return, and vote at once',
        },
      }),
      ...guard.breaks(kept, {
        'a promoted replica of a declared master is trusted': {
          faults: ['promoted replica'],
          declared: 'met',
          story: 'L holds m1, m2; the replicas of both are promoted, and vote at once',
        },
        "declared, and a replica's data is started as the primary": {
          faults: ['lagging copy'],
          declared: 'met',
          story: "a limit, the operator's word: nothing shows that the data is a copy",
        },
        'declared, and a promoted replica is restarted before a process has met it': {
          faults: ['promoted replica', 'kept restart'],
          declared: 'unmet',
          story: 'a limit: L holds m1, m2; m1 is promoted and restarted, which leaves no trace',
        },
      }),
      ...guard.breaks(replaced, {
        'declared, and X has not met the spares': {
          declared: 'unmet',
          quick: false,
          story: 'a limit: L holds m1, m2, which are spares; the masters from before return, and X knows no other data',
        },
      }),
    ],
  },
  {
    title: 'State: which masters are the first (rule 10.2)',
    holds: installation.holds(lost, {
      'P knew the data of all masters, each is lost twice at most': { losses: 2, quick: true },
      'P knew the data of one master only, each is lost once': { knows: 1, quick: true },
      'a new installation is certain when its masters vote early': { knows: 0, losses: 0, quick: true },
    }),
    breaks: installation.breaks(lost, {
      'no objection': 'all lose their data; Q writes the markers, and P sees them without a word',
      'the masters are the first ones at once': 'all lose their data; Q reads twice before P has connected',
      'P writes the marker of lost data like one of new data, and objects to no marker of its own':
        'P writes three markers as if the masters were new',
      'no process lives that knew the data': {
        knows: 0,
        story: 'a limit: to Q, masters that all lost their data look like new ones',
      },
    }),
  },
  {
    title: 'Liveness: masters vote again in time',
    holds: [
      ...guard.holds(live, { 'all three vote W after two faults of any kind': { quick: true } }),
      ...guard.holds(newMasters, {
        'new masters vote after G, one client': { prompt: { within: 2, voting: 3, holder: false }, quick: true },
      }),
    ],
    breaks: guard.breaks(live, {
      'young marker replaced by a second wait':
        'a second marker is written before the first one votes: the wait begins anew',
    }),
  },
  {
    title: 'Question a: which attempt makes a witness (Protocol 8.5 and 8.6)',
    holds: [
      ...guard.holds(cutOff, {
        'sent to at least one master: safe': { attemptCounts: 'one' },
        'sent to at least a quorum, none added later: safe': { attemptCounts: 'quorum', holderKnows: 1 },
      }),
      ...guard.holds(busy(2), {
        'sent to at least a quorum: two of three new masters vote after G': { attemptCounts: 'quorum' },
      }),
    ],
    breaks: [
      ...guard.breaks(busy(2), {
        'every attempt counts: not live': {
          attemptCounts: 'always',
          story: 'L asks masters that cannot vote yet, and vetoes them',
        },
        'sent to at least one master: not live': {
          attemptCounts: 'one',
          story: 'm1 votes early; a client asks it, is a witness by that, and vetoes m2 and m3 before they vote',
        },
      }),
      ...guard.breaks(busy(3), {
        'sent to at least a quorum: the third master may wait for W': {
          attemptCounts: 'quorum',
          story: 'm1 and m2 vote early; a client asks both and vetoes m3 before it votes',
        },
      }),
      ...guard.breaks(cutOff, {
        'sent to at least a quorum, others added later: unsafe': {
          attemptCounts: 'quorum',
          holderKnows: 1,
          quick: false,
          without: ['attempt includes masters that vote later'],
          story: 'm1 grants to L, no witness yet; all data is lost; X lets all vote early; L adds m2 to its attempt',
        },
      }),
    ],
  },
  {
    title: 'Question b: no other master with known data can be read (Protocol 8.3)',
    holds: maxTtl.holds(raised, {
      'own wait, then W; one ttl for all; two losses': { ttls: [2, 2], losses: 2, noSource: 'own wait' },
      'repair: no marker until another one is read; different ttls, two losses': { losses: 2 },
    }),
    breaks: maxTtl.breaks(raised, {
      'own wait, then W; different ttls; one loss is enough': {
        ttls: [3, 1],
        noSource: 'own wait',
        story: 'm1 is lost; S, cut off from m2 and m3, waits twice for its own short W, then takes m1 and m3',
      },
    }),
  },
  {
    title: 'Question c: `from` is checked until it was seen to have passed for a nonce',
    holds: guard.holds(oneFault, {
      'one fault of any master, T = 2': { without: ['from checked until it passed once'], quick: true },
      'two faults of any master, T = 1': {
        ttl: 1,
        wait: 1,
        maxFaults: 2,
        without: ['from checked until it passed once'],
      },
    }),
    breaks: [],
  },
  {
    title: 'Question d: a level is forgotten when it is not confirmed',
    holds: maxTtl.holds(decay, { 'repair: both other masters read; A is cut off from m3': { sources: 2 } }),
    breaks: maxTtl.breaks(decay, {
      'a quorum knew the level before, one other master read': {
        quick: false,
        story: 'A is cut off from m3, which forgets; m1 is lost, and S reads m3',
      },
      'the own raise counts as known before': {
        level: 'to be raised',
        ownRaiseCounts: true,
        story: 'A confirms twice on m1 and m2, and never reaches m3',
      },
      'window shorter than the level and the age of a confirmation': {
        ttls: [3, 1],
        sources: 2,
        decay: { window: 1, refresh: 1 },
        quick: false,
        story: 'm1 and m3 forget the level while A still believes; m2 is lost, and S reads both',
      },
    }),
  },
  {
    title: 'Larger ttl: A holds for longer than S knows (Protocol 8.3 and 8.9)',
    holds: [
      ...maxTtl.holds(raise, {
        'raised on all masters, one other master read, one loss': { quick: true },
        'raised on a quorum, two other masters read, one loss': { use: 'quorum', sources: 2, quick: true },
        'raised on all masters, two other masters read, two losses': { losses: 2, sources: 2 },
        'repair: raised on all masters in two rounds, one other master read, two losses': {
          losses: 2,
          use: 'all twice',
        },
      }),
      ...maxTtl.holds(raised, {
        'known to all masters, one other master read, two losses': { losses: 2, quick: true },
      }),
    ],
    breaks: [
      ...maxTtl.breaks(raise, {
        'raised on a quorum, one other master read': {
          use: 'quorum',
          story: 'm1 is lost, and S reads the one master that A did not raise',
        },
        'raised on all masters, but m1 is lost before the last answer': {
          losses: 2,
          story: 'S renews m1 from m3 before A raises m3; A has all its answers; later m2 is lost, and S reads m1',
        },
      }),
      ...maxTtl.breaks(raised, {
        'all masters lose their data, own and remembered level': {
          ttls: [3, 2],
          allAtOnce: true,
          noSource: 'all unknown',
          contactEvery: 1,
          story: 'S writes its own level on all three; A raises the one that it reaches, and S takes the two others',
        },
      }),
    ],
  },
  {
    title: 'Tokens: unique and in order, whatever expires early',
    holds: [
      ...tokens.holds(twoClients, {
        'two clients, two heals, one lost answer': {},
        'three clients': { keys: [0, 0, 0], heals: 0, lostAnswers: 0, quick: true },
        'five masters': { masters: 5, heals: 0, lostAnswers: 0 },
        'three clients, one of them with a colliding key': { keys: [0, 0, 1], heals: 0, lostAnswers: 0 },
      }),
      ...tokens.holds(knownLoss, {
        'two masters lose their counters, quarantine longer than the difference of clocks': {
          heals: 0,
          loss: { losses: 2, ticks: 3, quarantine: 2, ahead: [1, 0] },
        },
        'one master loses its counters, one heal': { loss: { losses: 1, ticks: 2, quarantine: 1, ahead: [0, 0] } },
      }),
      ...tokens.holds(undisturbed, { 'a token stands after two rounds, whatever the counters are': { quick: true } }),
    ],
    breaks: [
      ...tokens.breaks(twoClients, {
        'draw without still-ours': 'A draws on m1 and confirms after B took the key there: both have one number',
        'confirm on any majority': 'A confirms on a master where it never drew, behind the draw of B',
        'confirm on draws of a minority': 'the one master that B draws on has not seen the token of A',
        'drawn once, confirmed anywhere':
          'A drew on m1, lost its key to B and set it again: it confirms the number of B',
        'healed master stays in D': 'the same, with the other masters drawn anew',
        'healed master stays in D, its counter raised':
          'the same: the raise changes nothing, since B drew a larger number',
        'a late request of an older connection sets the key after the draw':
          'an assumption: the key is set again behind the back of A, which confirms the number of B',
      }),
      ...tokens.breaks(knownLoss, {
        'answers of quarantined masters count':
          'm1 loses its counter; B draws on it at once, with a clock behind that of A',
        'quarantine shorter than the difference of clocks': {
          loss: { losses: 1, ticks: 4, quarantine: 1, ahead: [2, 0] },
          story: 'the floor of B, read after the quarantine, is below the token of A',
        },
        'unknown loss': 'm1 loses its counter and goes on as if it had not',
        'no floor': 'm1 loses its counter; after the quarantine it counts from one',
        'floor read before the quarantine ends': {
          quick: false,
          story: 'the round of B is sent during the quarantine and answered after it',
        },
        'floor clamped to late servers':
          'm1 has the right time and gives A its number; m2 loses its counter and clamps the floor of B',
      }),
      ...tokens.breaks(undisturbed, {
        'drawn anew in each round: not live': {
          rounds: 9,
          without: ['drawn anew in each round'],
          story: 'the largest counter stays ahead of the others by one',
        },
      }),
    ],
  },
  {
    title: 'State: a register for the next holder, without leases (section 10)',
    holds: [
      ...state.holds(twoHolders, { 'two holders, two sets each': { holders: [setTwice, setTwice], quick: true } }),
      ...state.holds(oneLost, {
        'one set each, one loss': { quick: true },
        'two sets each, four losses of any master': { holders: [setTwice, setTwice], losses: 4, quick: true },
        'one set each, two stale copies come back': { losses: 2, stale: true, quick: true },
        'sets repeated after an unknown result, two losses': {
          holders: [
            ['set', 'repeat', 'set'],
            ['set', 'repeat'],
          ],
          losses: 2,
        },
      }),
      ...state.holds(twoHolders, {
        'three holders, one set each': { holders: [set, set, set] },
        'three holders, two sets each': { holders: [setTwice, setTwice, setTwice] },
      }),
      ...state.holds(oneLost, { 'three holders, one set each, one loss': { holders: [set, set, set] } }),
      ...state.holds(twoReaders, { 'three holders, one of them sets, two losses': { losses: 2 } }),
      ...state.holds(oneLost, { 'five masters, two of them lose their data': { masters: 5, losses: 2 } }),
    ],
    breaks: [
      ...state.breaks(twoHolders, {
        'no promise on read':
          'B opens behind the first write of A and does not read it; A is acknowledged by the masters that B opened on',
      }),
      ...state.breaks(twoReaders, {
        'write-back under the old version':
          'the set of A is on m1; B returns the value before it from m2 and m3; C finds the set newer, and revives it',
        'no write-back':
          'the set of A is on m1; B returns it from there; C opens on m2 and m3, and returns the value before it',
        'nothing is not written back': {
          quick: false,
          story: 'the set of A is on m1; B finds nothing on m2 and m3; C returns the set',
        },
        'write-back skipped when a quorum agrees': {
          quick: false,
          story: 'the same: m2 and m3 agree, and m1 has not answered',
        },
      }),
      ...state.breaks(twoHolders, {
        'version is a number that two holders can have': {
          without: ['numbers are not unique, equal ones are promised'],
          story: 'A and B open with one number, and what B has not read is acknowledged',
        },
      }),
      ...state.breaks(oneLost, {
        'fencing token as version when its counter was lost': {
          without: ['a refused open counts'],
          story:
            'm1 loses its data; B has a smaller token than A, cannot raise it, reads m2 and m3, and sets on m1 and m3',
        },
      }),
      ...state.breaks(twoHolders, {
        'seq not raised for the next value': {
          holders: [setTwice, []],
          story: 'm1 has the value that was given up, and acknowledges the next one without storing it',
        },
      }),
      ...state.breaks(oneLost, {
        'reset master counts': {
          without: ['replies of other data count'],
          story: 'm1 forgets the set of A; B opens on m1 and m2 before A reaches m2, and finds nothing',
        },
        'stale master counts': {
          stale: true,
          without: ['replies of other data count'],
          story: 'the same, with the entry of before',
        },
        'open marks the data as written': 'a promise alone makes an entry, and the reset m1 counts for the next open',
        'a late marker of a new installation': {
          without: ['a reset master passes for a new installation'],
          story: 'a client saw N new masters, stalls, and writes `whole` on m1 after it has lost the set of A',
        },
        'scripts without the noted nonce': {
          without: ['no noted nonce'],
          story: 'a master loses the promise to B, and accepts the set of A',
        },
        'no quarantine, or an open round that outlasts it': {
          without: ['no quarantine'],
          story:
            'm1 answers A and is lost; B opens with a smaller ballot on m2 and m3, A on m2 after it; B sets on m1 and m3',
        },
        'nonce noted during the quarantine': 'the same: B opens during the quarantine, and sets after it',
      }),
      ...state.breaks(twoHolders, {
        'a promise expires': 'm1 forgets that it has promised B, and accepts the set of A',
        'a newer value expires before an older one': {
          stale: true,
          story: 'the set of A did not reach m3 and expires; B returns the value before it',
        },
        'a later get answers from memory': 'A gets; B sets; A gets the same again',
      }),
    ],
  },
  {
    title: 'Questions e to j: what section 10 leaves open',
    holds: [
      ...state.holds(oneLost, {
        'e: two sets of one holder in flight, one loss': {
          holders: [setTwice, setTwice],
          without: ['two sets in flight'],
        },
      }),
      ...state.holds(twoReaders, {
        'f: write-back skipped when all agree on the value, one loss': {
          losses: 1,
          without: ['write-back skipped when all agree on the value'],
        },
        'g: numbers are not unique, an equal one is refused, one loss': {
          losses: 1,
          without: ['numbers are not unique, equal ones are refused'],
        },
        'h: no data is lost: no quarantine, and late replies to an open count': {
          without: ['no quarantine', 'no noted nonce'],
        },
        'i: no data is lost: an open counts that is refused': { without: ['a refused open counts'] },
      }),
    ],
    breaks: state.breaks(twoHolders, {
      'j: no other holder opens between a get and the acknowledgement of a set': {
        without: ['no holder opens before the acknowledgement'],
        story: 'm1 has the set of A; B reads it on m1 and m2; m3 acknowledges the set of A',
      },
    }),
  },
  ...doubtSections,
  ...standstillSections,
  ...sharedSections,
  ...clusterSections,
  ...sentinelSections,
];
