import { clusterSections } from './cluster.configurations.js';
import { doubtSections } from './doubt.configurations.js';
import { GuardModel, type GuardOptions } from './guard.model.js';
import { InstallationModel, type InstallationOptions } from './installation.model.js';
import { MaxTtlModel, type MaxTtlOptions } from './max-ttl.model.js';
import { ResourceStateModel, type ResourceStateOptions } from './resource-state.model.js';
import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';
import { sentinelSections } from './sentinel.configurations.js';
import { sharedSections } from './shared.configurations.js';
import { standstillSections } from './standstill.configurations.js';
import { TokensModel, type TokensOptions } from './tokens.model.js';

const anyFault = ['empty restart', 'stale restart', 'flush', 'failback'] as const;
const oneFault: GuardOptions = { masters: 3, ttl: 2, wait: 2, faults: anyFault, maxFaults: 1 };
/**
 * One lock is enough: an extension before the loss amounts to a later attempt, and one after it counts on no master.
 */
const cutOff: GuardOptions = {
  masters: 3,
  ttl: 3,
  wait: 3,
  faults: ['all lost'],
  maxFaults: 1,
  early: { contactEvery: 1, wait: 2 },
  oneAttempt: true,
};
const live: GuardOptions = {
  masters: 3,
  ttl: 3,
  wait: 3,
  faults: [...anyFault, 'warm spare', 'all lost'],
  maxFaults: 2,
  prompt: { within: 3, voting: 3, holder: false },
};
const newMasters: GuardOptions = {
  masters: 3,
  ttl: 3,
  wait: 6,
  faults: [],
  maxFaults: 0,
  newMasters: true,
  early: { contactEvery: 1, wait: 2 },
};
/** Both clients request locks as soon as they believe that a master votes. */
const busy = (voting: number): GuardOptions => ({
  ...newMasters,
  holderWrites: true,
  prompt: { within: 3, voting, holder: true },
});

const guard: Section = {
  title: 'Guard: a holder, a contender, and data that changes behind an address',
  holds: [
    guardHolds('two faults of any master, T = 1', { ...oneFault, ttl: 1, wait: 1, maxFaults: 2 }, true),
    guardHolds('two faults of any master, T = 2', { ...oneFault, maxFaults: 2 }),
    guardHolds('one fault, T = 3', { ...oneFault, ttl: 3, wait: 3 }),
    guardHolds('two warm spares, T = 2', { ...oneFault, faults: ['warm spare'], maxFaults: 2 }),
    guardHolds('five masters, two lose their data, T = 1', {
      ...oneFault,
      masters: 5,
      ttl: 1,
      wait: 1,
      faults: ['empty restart'],
      maxFaults: 2,
    }),
    guardHolds('all masters lose their data, the holder contacts one master per H', { ...cutOff, holderWrites: true }),
  ],
  breaks: [
    guardBreaks('no replid in the identity', {
      ...oneFault,
      without: ['identity without replid'],
      story: 'L on m1, m2; m2 fails back, with its marker and without the key; X on m2, m3',
    }),
    guardBreaks('replid compared at the handshake only', {
      ...oneFault,
      without: ['replid compared at the handshake only'],
      story: 'the same, over a connection that X had before',
    }),
    guardBreaks('uptime shortens the wait', {
      ...oneFault,
      faults: ['warm spare'],
      without: ['uptime shortens the wait'],
      story: 'the address of m1 moves to an empty spare that has been up for long: it votes at once',
    }),
    guardBreaks('marker not checked in the voting script', {
      ...oneFault,
      without: ['marker not checked in the voting script'],
      story: 'm1 is flushed; X votes there on the word of its old handshake',
    }),
    guardBreaks('heal counts on a quarantined master', {
      ...oneFault,
      without: ['heal counts on a quarantined master'],
      story: 'm3 restarts empty after X counted it; L sets its key there again and believes on; X takes m1',
    }),
    guardBreaks('extension of a present key counts there, heals written too', {
      ...oneFault,
      without: ['extension of a present key counts on a quarantined master'],
      story: 'the heal that did not count makes the key present for the next extension',
    }),
    guardBreaks('extension of a present key counts there, heals not written', {
      ...oneFault,
      without: [
        'extension of a present key counts on a quarantined master',
        'heals are not written on a quarantined master',
      ],
      story: "a stale copy shows L's key with its full ttl while X counts the master",
    }),
    guardBreaks('wait shorter than the ttl', {
      ...oneFault,
      wait: 1,
      story: 'm1 restarts empty and votes for X while L still believes',
    }),
    guardBreaks('old and new process behind one address both acknowledge', {
      ...oneFault,
      faults: ['two processes'],
      without: [],
      story: 'an assumption: the old process extends for L, the new one grants to X after its quarantine',
    }),
    guardBreaks('early vote by a holder', {
      ...cutOff,
      without: ['early vote by a holder'],
      story: 'all data is lost; L itself lets the masters vote early; X enters with them',
    }),
    guardBreaks('early vote seen on a quorum only', {
      ...cutOff,
      without: ['early vote seen on a quorum'],
      story: 'L reaches only the third master, and its veto stands there unread',
    }),
    guardBreaks('early vote confirmed on a quorum only', {
      ...cutOff,
      without: ['early vote confirmed on a quorum'],
      story: 'the second reading leaves out the one master that L reaches',
    }),
    guardBreaks('no veto', {
      ...cutOff,
      without: ['no veto'],
      story: 'L meets a young marker and leaves it as it is',
    }),
    guardBreaks('G not larger than H', {
      ...cutOff,
      early: { contactEvery: 1, wait: 1 },
      story: 'X lets the masters vote before the next contact of L is due',
    }),
    guardBreaks('no second reading', {
      ...cutOff,
      without: ['no second reading'],
      story: 'the write to the vetoed master fails, and those to the two others succeed',
    }),
    guardBreaks('marker whose `from` has passed counts as young', {
      ...cutOff,
      faults: ['empty restart'],
      without: ['passed marker counts as young'],
      story: 'one loss: two masters that vote pass for young ones, and the third votes early',
    }),
    guardBreaks('a refused command counts as a contact', {
      ...cutOff,
      without: ['refused command counts as a contact'],
      story: 'a master refuses the nonce of L within each H, and L never reads the young marker',
    }),
  ],
};

const kept: GuardOptions = { ...oneFault, ttl: 1, wait: 1, maxFaults: 2 };
const replaced: GuardOptions = { ...kept, faults: ['spare', 'return'], maxFaults: 4, declared: 'met' };

const durable: Section = {
  title: 'Guard: masters that are declared durable (rule 8.8)',
  holds: [
    guardHolds('declared: two restarts with all data, T = 2', {
      ...{ ...kept, ttl: 2, wait: 2 },
      ...{ faults: ['kept restart'], declared: 'met' },
    }),
    guardHolds(
      'declared: restarts with all data, without, and promotions, T = 1',
      {
        ...{ ...kept, declared: 'met' },
        faults: ['kept restart', 'empty restart', 'promoted replica'],
      },
      true,
    ),
    guardHolds('declared: two spares, which both processes meet before the masters return', replaced),
    guardHolds('not declared: lagging copies, files that were switched off, spares, returns', {
      ...kept,
      faults: ['kept restart', 'lagging copy', 'promoted replica', 'spare', 'return'],
    }),
  ],
  breaks: [
    guardBreaks('durability that is inferred, from `appendfsync` or a marker', {
      ...{ ...kept, faults: ['lagging copy'], without: ['durability is inferred'] },
      story: 'L holds m1, m2; both are started with a copy that lacks the key, and vote at once',
    }),
    guardBreaks('declared, and another nonce is known of the address', {
      ...{ ...replaced, without: ['declared without nonce comparison'], slow: true },
      story: 'L holds m1, m2, which are spares; the masters from before return, and vote at once',
    }),
    guardBreaks('a promoted replica of a declared master is trusted', {
      ...{ ...kept, faults: ['promoted replica'], declared: 'met', without: ['promoted replica trusted'] },
      story: 'L holds m1, m2; the replicas of both are promoted, and vote at once',
    }),
    guardBreaks("declared, and a replica's data is started as the primary", {
      ...{ ...kept, faults: ['lagging copy'], declared: 'met' },
      story: "a limit, the operator's word: nothing shows that the data is a copy",
    }),
    guardBreaks('declared, and a promoted replica is restarted before a process has met it', {
      ...{ ...kept, faults: ['promoted replica', 'kept restart'], declared: 'unmet' },
      story: 'a limit: L holds m1, m2; m1 is promoted and restarted, which leaves no trace',
    }),
    guardBreaks('declared, and X has not met the spares', {
      ...{ ...replaced, declared: 'unmet', slow: true },
      story: 'a limit: L holds m1, m2, which are spares; the masters from before return, and X knows no other data',
    }),
  ],
};

const installation: Section = {
  title: 'State: which masters are the first (rule 10.2)',
  holds: [
    installationHolds('P knew the data of all masters, each is lost twice at most', { knows: 3, losses: 2 }, true),
    installationHolds('P knew the data of one master only, each is lost once', { knows: 1, losses: 1 }, true),
    installationHolds('a new installation is certain when its masters vote early', { knows: 0, losses: 0 }, true),
  ],
  breaks: [
    installationBreaks('no objection', {
      ...{ knows: 3, losses: 1, without: ['no objection'] },
      story: 'all lose their data; Q writes the markers, and P sees them without a word',
    }),
    installationBreaks('the masters are the first ones at once', {
      ...{ knows: 3, losses: 1, without: ['no wait'] },
      story: 'all lose their data; Q reads twice before P has connected',
    }),
    installationBreaks('P writes the marker of lost data like one of new data, and objects to no marker of its own', {
      ...{ knows: 3, losses: 1, without: ['own losses count as new'] },
      story: 'P writes three markers as if the masters were new',
    }),
    installationBreaks('no process lives that knew the data', {
      ...{ knows: 0, losses: 1 },
      story: 'a limit: Q cannot tell masters that all lost their data from new ones',
    }),
  ],
};

const liveness: Section = {
  title: 'Liveness: masters vote again in time',
  holds: [
    guardHolds('all three vote W after two faults of any kind', live, true),
    guardHolds(
      'new masters vote after G, one client',
      { ...newMasters, prompt: { within: 2, voting: 3, holder: false } },
      true,
    ),
  ],
  breaks: [
    guardBreaks('young marker replaced by a second wait', {
      ...live,
      without: ['young marker replaced by a second wait'],
      story: 'a second marker is written before the first one votes: the wait begins anew',
    }),
  ],
};

const attempts: Section = {
  title: 'Question a: which attempt makes a witness (Protocol 8.5 and 8.6)',
  holds: [
    guardHolds('sent to at least one master: safe', { ...cutOff, attemptCounts: 'one' }),
    guardHolds('sent to at least a quorum, none added later: safe', {
      ...cutOff,
      attemptCounts: 'quorum',
      holderKnows: 1,
    }),
    guardHolds('sent to at least a quorum: two of three new masters vote after G', {
      ...busy(2),
      attemptCounts: 'quorum',
    }),
  ],
  breaks: [
    guardBreaks('every attempt counts: not live', {
      ...busy(2),
      attemptCounts: 'always',
      story: 'L asks masters that cannot vote yet, and vetoes them',
    }),
    guardBreaks('sent to at least one master: not live', {
      ...busy(2),
      attemptCounts: 'one',
      story: 'm1 votes early; a client asks it, is a witness by that, and vetoes m2 and m3 before they vote',
    }),
    guardBreaks('sent to at least a quorum: the third master may wait for W', {
      ...busy(3),
      attemptCounts: 'quorum',
      story: 'm1 and m2 vote early; a client asks both and vetoes m3 before it votes',
    }),
    guardBreaks('sent to at least a quorum, others added later: unsafe', {
      ...cutOff,
      attemptCounts: 'quorum',
      holderKnows: 1,
      slow: true,
      without: ['attempt includes masters that vote later'],
      story: 'm1 grants to L, no witness yet; all data is lost; X lets all vote early; L adds m2 to its attempt',
    }),
  ],
};

const fromOnce: Section = {
  title: 'Question c: `from` is checked until it was seen to have passed for a nonce',
  holds: [
    guardHolds('one fault of any master, T = 2', { ...oneFault, without: ['from checked until it passed once'] }, true),
    guardHolds('two faults of any master, T = 1', {
      ...oneFault,
      ttl: 1,
      wait: 1,
      maxFaults: 2,
      without: ['from checked until it passed once'],
    }),
  ],
  breaks: [],
};

const twoClients: TokensOptions = { masters: 3, keys: [0, 0], heals: 2, lostAnswers: 1 };
const knownLoss: TokensOptions = {
  masters: 3,
  keys: [0, 0],
  heals: 1,
  lostAnswers: 0,
  loss: { losses: 1, ticks: 4, quarantine: 2, ahead: [1, 0] },
};
const undisturbed: TokensOptions = { masters: 3, keys: [0], heals: 0, lostAnswers: 0, rounds: 2 };

const tokens: Section = {
  title: 'Tokens: unique and in order, whatever expires early',
  holds: [
    tokensHold('two clients, two heals, one lost answer', twoClients),
    tokensHold('three clients', { ...twoClients, keys: [0, 0, 0], heals: 0, lostAnswers: 0 }, true),
    tokensHold('five masters', { ...twoClients, masters: 5, heals: 0, lostAnswers: 0 }),
    tokensHold('three clients, one of them with a colliding key', {
      ...twoClients,
      keys: [0, 0, 1],
      heals: 0,
      lostAnswers: 0,
    }),
    tokensHold('two masters lose their counters, quarantine longer than the difference of clocks', {
      ...knownLoss,
      heals: 0,
      loss: { losses: 2, ticks: 3, quarantine: 2, ahead: [1, 0] },
    }),
    tokensHold('one master loses its counters, one heal', {
      ...knownLoss,
      loss: { losses: 1, ticks: 2, quarantine: 1, ahead: [0, 0] },
    }),
    tokensHold('a token stands after two rounds, whatever the counters are', undisturbed, true),
  ],
  breaks: [
    tokensBreak('draw without still-ours', {
      ...twoClients,
      without: ['draw without still-ours'],
      story: 'A draws on m1 and confirms after B took the key there: both have one number',
    }),
    tokensBreak('confirm on any majority', {
      ...twoClients,
      without: ['confirm on any majority'],
      story: 'A confirms on a master where it never drew, behind the draw of B',
    }),
    tokensBreak('confirm on draws of a minority', {
      ...twoClients,
      without: ['confirm on draws of a minority'],
      story: 'the one master that B draws on has not seen the token of A',
    }),
    tokensBreak('drawn once, confirmed anywhere', {
      ...twoClients,
      without: ['drawn once, confirmed anywhere'],
      story: 'A drew on m1, lost its key to B and set it again: it confirms the number of B',
    }),
    tokensBreak('healed master stays in D', {
      ...twoClients,
      without: ['healed master stays in D'],
      story: 'the same, with the other masters drawn anew',
    }),
    tokensBreak('healed master stays in D, its counter raised', {
      ...twoClients,
      without: ['healed master stays in D, its counter raised'],
      story: 'the same: the raise changes nothing, since B drew a larger number',
    }),
    tokensBreak('a late request of an older connection sets the key after the draw', {
      ...twoClients,
      without: ['request of an older connection sets the key after the draw'],
      story: 'an assumption: the key is set again behind the back of A, which confirms the number of B',
    }),
    tokensBreak('answers of quarantined masters count', {
      ...knownLoss,
      without: ['quarantined answers count'],
      story: 'm1 loses its counter; B draws on it at once, with a clock behind that of A',
    }),
    tokensBreak('quarantine shorter than the difference of clocks', {
      ...knownLoss,
      loss: { losses: 1, ticks: 4, quarantine: 1, ahead: [2, 0] },
      story: 'the floor of B, read after the quarantine, is below the token of A',
    }),
    tokensBreak('unknown loss', {
      ...knownLoss,
      without: ['unknown loss'],
      story: 'm1 loses its counter and goes on as if it had not',
    }),
    tokensBreak('no floor', {
      ...knownLoss,
      without: ['no floor'],
      story: 'm1 loses its counter; after the quarantine it counts from one',
    }),
    tokensBreak('floor read before the quarantine ends', {
      ...knownLoss,
      slow: true,
      without: ['floor read before the quarantine ends'],
      story: 'the round of B is sent during the quarantine and answered after it',
    }),
    tokensBreak('floor clamped to late servers', {
      ...knownLoss,
      without: ['floor clamped to late servers'],
      story: 'm1 has the right time and gives A its number; m2 loses its counter and clamps the floor of B',
    }),
    tokensBreak('drawn anew in each round: not live', {
      ...undisturbed,
      rounds: 9,
      without: ['drawn anew in each round'],
      story: 'the largest counter stays ahead of the others by one',
    }),
  ],
};

const raise: MaxTtlOptions = {
  ttls: [2, 1],
  level: 'to be raised',
  losses: 1,
  use: 'all',
  sources: 1,
  noSource: 'nothing',
};
const raised: MaxTtlOptions = { ...raise, level: 'known' };

const maxTtl: Section = {
  title: 'Larger ttl: A holds for longer than S knows (Protocol 8.3 and 8.9)',
  holds: [
    maxTtlHolds('raised on all masters, one other master read, one loss', raise, true),
    maxTtlHolds('raised on a quorum, two other masters read, one loss', { ...raise, use: 'quorum', sources: 2 }, true),
    maxTtlHolds('raised on all masters, two other masters read, two losses', { ...raise, losses: 2, sources: 2 }),
    maxTtlHolds('repair: raised on all masters in two rounds, one other master read, two losses', {
      ...raise,
      losses: 2,
      use: 'all twice',
    }),
    maxTtlHolds('known to all masters, one other master read, two losses', { ...raised, losses: 2 }, true),
  ],
  breaks: [
    maxTtlBreaks('raised on a quorum, one other master read', {
      ...raise,
      use: 'quorum',
      story: 'm1 is lost, and S reads the one master that A did not raise',
    }),
    maxTtlBreaks('raised on all masters, but m1 is lost before the last answer', {
      ...raise,
      losses: 2,
      story: 'S renews m1 from m3 before A raises m3; A has all its answers; later m2 is lost, and S reads m1',
    }),
    maxTtlBreaks('all masters lose their data, own and remembered level', {
      ...raised,
      ttls: [3, 2],
      allAtOnce: true,
      noSource: 'all unknown',
      contactEvery: 1,
      story: 'S writes its own level on all three; A raises the one that it reaches, and S takes the two others',
    }),
  ],
};

const ownWait: Section = {
  title: 'Question b: no other master with known data can be read (Protocol 8.3)',
  holds: [
    maxTtlHolds('own wait, then W; one ttl for all; two losses', {
      ...raised,
      ttls: [2, 2],
      losses: 2,
      noSource: 'own wait',
    }),
    maxTtlHolds('repair: no marker until another one is read; different ttls, two losses', { ...raised, losses: 2 }),
  ],
  breaks: [
    maxTtlBreaks('own wait, then W; different ttls; one loss is enough', {
      ...raised,
      ttls: [3, 1],
      noSource: 'own wait',
      story: 'm1 is lost; S, cut off from m2 and m3, waits twice for its own short W, then takes m1 and m3',
    }),
  ],
};

const decay: MaxTtlOptions = {
  ...raised,
  use: 'all, or a quorum that knew it before',
  cutOff: true,
  decay: { window: 3, refresh: 1 },
};

const forgotten: Section = {
  title: 'Question d: a level is forgotten when it is not confirmed',
  holds: [maxTtlHolds('repair: both other masters read; A is cut off from m3', { ...decay, sources: 2 })],
  breaks: [
    maxTtlBreaks('a quorum knew the level before, one other master read', {
      ...decay,
      slow: true,
      story: 'A is cut off from m3, which forgets; m1 is lost, and S reads m3',
    }),
    maxTtlBreaks('the own raise counts as known before', {
      ...decay,
      level: 'to be raised',
      ownRaiseCounts: true,
      story: 'A confirms twice on m1 and m2, and never reaches m3',
    }),
    maxTtlBreaks('window shorter than the level and the age of a confirmation', {
      ...decay,
      ttls: [3, 1],
      sources: 2,
      decay: { window: 1, refresh: 1 },
      slow: true,
      story: 'm1 and m3 forget the level while A still believes; m2 is lost, and S reads both',
    }),
  ],
};

const twoHolders: ResourceStateOptions = { masters: 3, holders: [['set'], ['set']], losses: 0 };
const oneLost: ResourceStateOptions = { ...twoHolders, losses: 1 };
/** Three holders get; the first one may set. */
const twoReaders: ResourceStateOptions = { ...twoHolders, holders: [['set'], [], []] };

const state: Section = {
  title: 'State: a register for the next holder, without leases (section 10)',
  holds: [
    stateHolds('two holders, two sets each', { ...twoHolders, holders: twice(['set', 'set']) }, true),
    stateHolds('one set each, one loss', oneLost, true),
    stateHolds(
      'two sets each, four losses of any master',
      { ...oneLost, holders: twice(['set', 'set']), losses: 4 },
      true,
    ),
    stateHolds('one set each, two stale copies come back', { ...oneLost, losses: 2, stale: true }, true),
    stateHolds('sets repeated after an unknown result, two losses', {
      ...oneLost,
      holders: [
        ['set', 'repeat', 'set'],
        ['set', 'repeat'],
      ],
      losses: 2,
    }),
    stateHolds('three holders, one set each', { ...twoHolders, holders: [['set'], ['set'], ['set']] }),
    stateHolds('three holders, two sets each', {
      ...twoHolders,
      holders: [...twice(['set', 'set']), ['set', 'set']],
    }),
    stateHolds('three holders, one set each, one loss', { ...oneLost, holders: [['set'], ['set'], ['set']] }),
    stateHolds('three holders, one of them sets, two losses', { ...twoReaders, losses: 2 }),
    stateHolds('five masters, two of them lose their data', { ...oneLost, masters: 5, losses: 2 }),
  ],
  breaks: [
    stateBreaks('no promise on read', {
      ...twoHolders,
      without: ['no promise'],
      story:
        'B opens behind the first write of A and does not read it; A is acknowledged by the masters that B opened on',
    }),
    stateBreaks('write-back under the old version', {
      ...twoReaders,
      without: ['write-back under the old version'],
      story:
        'the set of A is on m1; B returns the value before it from m2 and m3; C finds the set newer, and revives it',
    }),
    stateBreaks('no write-back', {
      ...twoReaders,
      without: ['no write-back'],
      story: 'the set of A is on m1; B returns it from there; C opens on m2 and m3, and returns the value before it',
    }),
    stateBreaks('nothing is not written back', {
      ...twoReaders,
      slow: true,
      without: ['nothing is not written back'],
      story: 'the set of A is on m1; B finds nothing on m2 and m3; C returns the set',
    }),
    stateBreaks('write-back skipped when a quorum agrees', {
      ...twoReaders,
      slow: true,
      without: ['write-back skipped when a quorum agrees'],
      story: 'the same: m2 and m3 agree, and m1 has not answered',
    }),
    stateBreaks('version is a number that two holders can have', {
      ...twoHolders,
      without: ['numbers are not unique, equal ones are promised'],
      story: 'A and B open with one number, and what B has not read is acknowledged',
    }),
    stateBreaks('fencing token as version when its counter was lost', {
      ...oneLost,
      without: ['a refused open counts'],
      story: 'm1 loses its data; B has a smaller token than A, cannot raise it, reads m2 and m3, and sets on m1 and m3',
    }),
    stateBreaks('seq not raised for the next value', {
      ...twoHolders,
      holders: [['set', 'set'], []],
      without: ['seq is not raised'],
      story: 'm1 has the value that was given up, and acknowledges the next one without storing it',
    }),
    stateBreaks('reset master counts', {
      ...oneLost,
      without: ['replies of other data count'],
      story: 'm1 forgets the set of A; B opens on m1 and m2 before A reaches m2, and finds nothing',
    }),
    stateBreaks('stale master counts', {
      ...oneLost,
      stale: true,
      without: ['replies of other data count'],
      story: 'the same, with the entry of before',
    }),
    stateBreaks('open marks the data as written', {
      ...oneLost,
      without: ['open marks the data as written'],
      story: 'a promise alone makes an entry, and the reset m1 counts for the next open',
    }),
    stateBreaks('a late marker of a new installation', {
      ...oneLost,
      without: ['a reset master passes for a new installation'],
      story: 'a client saw N new masters, stalls, and writes `whole` on m1 after it has lost the set of A',
    }),
    stateBreaks('scripts without the noted nonce', {
      ...oneLost,
      without: ['no noted nonce'],
      story: 'a master loses the promise to B, and accepts the set of A',
    }),
    stateBreaks('no quarantine, or an open round that outlasts it', {
      ...oneLost,
      without: ['no quarantine'],
      story:
        'm1 answers A and is lost; B opens with a smaller ballot on m2 and m3, A on m2 after it; B sets on m1 and m3',
    }),
    stateBreaks('nonce noted during the quarantine', {
      ...oneLost,
      without: ['nonce noted during the quarantine'],
      story: 'the same: B opens during the quarantine, and sets after it',
    }),
    stateBreaks('a promise expires', {
      ...twoHolders,
      without: ['a promise expires'],
      story: 'm1 forgets that it has promised B, and accepts the set of A',
    }),
    stateBreaks('a newer value expires before an older one', {
      ...twoHolders,
      stale: true,
      without: ['a newer value expires before an older one'],
      story: 'the set of A did not reach m3 and expires; B returns the value before it',
    }),
    stateBreaks('a later get answers from memory', {
      ...twoHolders,
      without: ['a later get answers from memory'],
      story: 'A gets; B sets; A gets the same again',
    }),
  ],
};

const stateQuestions: Section = {
  title: 'Questions e to j: what section 10 leaves open',
  holds: [
    stateHolds('e: two sets of one holder in flight, one loss', {
      ...oneLost,
      holders: twice(['set', 'set']),
      without: ['two sets in flight'],
    }),
    stateHolds('f: write-back skipped when all agree on the value, one loss', {
      ...twoReaders,
      losses: 1,
      without: ['write-back skipped when all agree on the value'],
    }),
    stateHolds('g: numbers are not unique, an equal one is refused, one loss', {
      ...twoReaders,
      losses: 1,
      without: ['numbers are not unique, equal ones are refused'],
    }),
    stateHolds('h: no data is lost: no quarantine, and late replies to an open count', {
      ...twoReaders,
      without: ['no quarantine', 'no noted nonce'],
    }),
    stateHolds('i: no data is lost: an open counts that is refused', {
      ...twoReaders,
      without: ['a refused open counts'],
    }),
  ],
  breaks: [
    stateBreaks('j: no other holder opens between a get and the acknowledgement of a set', {
      ...twoHolders,
      without: ['no holder opens before the acknowledgement'],
      story: 'm1 has the set of A; B reads it on m1 and m2; m3 acknowledges the set of A',
    }),
  ],
};

export const sections: readonly Section[] = [
  guard,
  durable,
  installation,
  liveness,
  attempts,
  ownWait,
  fromOnce,
  forgotten,
  maxTtl,
  tokens,
  state,
  stateQuestions,
  ...doubtSections,
  ...standstillSections,
  ...sharedSections,
  ...clusterSections,
  ...sentinelSections,
];

function installationHolds(name: string, options: InstallationOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new InstallationModel(options) };
}

function installationBreaks(name: string, { story, slow, ...options }: InstallationOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new InstallationModel(options) };
}

function guardHolds(name: string, options: GuardOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new GuardModel(options) };
}

function guardBreaks(name: string, { story, slow, ...options }: GuardOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new GuardModel(options) };
}

function tokensHold(name: string, options: TokensOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new TokensModel(options) };
}

function tokensBreak(name: string, { story, slow, ...options }: TokensOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new TokensModel(options) };
}

function maxTtlHolds(name: string, options: MaxTtlOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new MaxTtlModel(options) };
}

function maxTtlBreaks(name: string, { story, slow, ...options }: MaxTtlOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new MaxTtlModel(options) };
}

/** Two holders that do the same. */
function twice(writes: ResourceStateOptions['holders'][number]): ResourceStateOptions['holders'] {
  return [writes, writes];
}

function stateHolds(name: string, options: ResourceStateOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new ResourceStateModel({ ...options, sorted: true }) };
}

function stateBreaks(name: string, { story, slow, ...options }: ResourceStateOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new ResourceStateModel(options) };
}
