// The configurations of section 12.
import { ClusterModel } from './cluster.model.js';
import { type ClusterOptions } from './cluster.options.js';
import { PartitionsModel, type PartitionsOptions } from './partitions.model.js';
import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';

const restarts = ['empty restart', 'stale restart', 'flush'] as const;
const anyEvent = ['takeover', 'atomic move', 'forced move', 'reclaim', ...restarts] as const;

/** W_c is W + H: see question q. */
const one: ClusterOptions = {
  primaries: 3,
  ttl: 2,
  viewAge: 1,
  masterTimeout: 1,
  wait: 3,
  view: 'claims',
  events: ['takeover'],
  maxEvents: 1,
};
const two: ClusterOptions = { ...one, maxEvents: 2 };
const oneTick: ClusterOptions = { ...two, ttl: 1, masterTimeout: 0, wait: 2 };
const lateSeals: ClusterOptions = { ...two, events: restarts, lateSeals: true };

const failover: Section = {
  title: 'Cluster: failovers and restarts behind one master (section 12)',
  holds: [
    clusterHolds('one takeover', one, true),
    clusterHolds('two takeovers', two),
    clusterHolds('three takeovers, T = 1', { ...oneTick, maxEvents: 3 }),
    clusterHolds('a takeover, restarts and a flush, two of any', { ...two, events: ['takeover', ...restarts] }),
    clusterHolds('one takeover, T = 3, H = 2', { ...one, ttl: 3, viewAge: 2, wait: 5 }),
    clusterHolds('five primaries, two takeovers, T = 1', { ...oneTick, primaries: 5 }),
    clusterHolds('one primary, two restarts or flushes', { ...two, primaries: 1, events: restarts }, true),
    clusterHolds('seals that arrive late, two restarts or flushes', lateSeals, true),
    clusterHolds('seals that arrive late, a takeover, restarts and a flush, two of any, T = 1', {
      ...oneTick,
      events: ['takeover', ...restarts],
      lateSeals: true,
    }),
  ],
  breaks: [
    clusterBreaks('no guard', {
      ...one,
      events: ['empty restart'],
      without: ['no guard'],
      story: 'L on A; A restarts empty within the node timeout, and grants X',
    }),
    clusterBreaks('W in place of W_c', {
      ...one,
      wait: 2,
      story: 'L views; B takes over and is sealed; L, still on A, is granted; the seal of B ends before that lock',
    }),
    clusterBreaks('a view older than H counts', {
      ...one,
      viewAge: 2,
      story: 'the same, with W_c and an older view',
    }),
    clusterBreaks('no view', {
      ...one,
      without: ['votes count without a view'],
      story: 'A stands still, B takes over and grants after W_c; A wakes and grants, too',
    }),
    clusterBreaks('a seal is written on the word of one node (the map in place of the epoch)', {
      ...one,
      without: ['a seal is written on the word of one node'],
      story: 'only B knows that it took over, and is sealed; A, C and D confirm the view of X on A for ever',
    }),
    clusterBreaks('a seal is written on the word of a majority with the owner in it', {
      ...one,
      without: ['a seal is written on the word of a majority that includes the owner'],
      story: 'B and C know that B took over, A and D do not: each side is a majority',
    }),
    clusterBreaks('a seal is written whatever its process claims', {
      ...two,
      slow: true,
      without: ['a seal is written whatever its process claims'],
      story:
        'A has the slots again, which only A knows; a client with the first map seals A, and B still gets its views',
    }),
    clusterBreaks('a seal is written when the others name the owner, under any config epoch', {
      ...two,
      slow: true,
      without: ['a seal is written when the other primaries name the owner'],
      story: 'A has the slots again; D, which has not heard of B, names A, then hears of B, and confirms it, too',
    }),
    clusterBreaks('a vote counts although the map has changed since', {
      ...one,
      without: ['a vote counts although the map has changed since'],
      story: 'X asks A, reads the map with B, and confirms the vote of A by a view for B',
    }),
    clusterBreaks('identity is the nonce only', {
      ...one,
      without: ['identity is the nonce only'],
      story: 'L on A; the replica B has the seal and not the key, and grants X',
    }),
    clusterBreaks('no run id, and a replid that was compared before', {
      ...one,
      events: ['stale restart'],
      without: ['identity without run id'],
      story:
        'L on A; A restarts within the node timeout from an old copy, behind a connection that survives in a proxy',
    }),
    clusterBreaks('no replid', {
      ...two,
      without: ['identity without replid'],
      story: 'A, B, A without a new process: the seal of A comes back with the data of B, and the key is gone',
    }),
    clusterBreaks('validity counts from the answer', {
      ...one,
      without: ['validity counts from the answer'],
      story: 'a lock that A grants late ends after the quarantine of B',
    }),
    clusterBreaks('extension of a present key counts in a quarantine', {
      ...one,
      without: ['extension of a present key counts in a quarantine'],
      story: 'B has a copy of the key and extends it for L; on A the key ends, and A grants X',
    }),
    clusterBreaks('`from` is computed when the data is read', {
      ...lateSeals,
      without: ['`from` is computed when the data is read'],
      story: 'X reads no seal; L writes one and holds; a flush; the seal of X arrives, and its `from` has passed',
    }),
    clusterBreaks('an only primary, and its replica takes over', {
      ...one,
      primaries: 1,
      story: 'an assumption: there is no other primary that could confirm or deny',
    }),
  ],
};

/** A partition goes away, is lost there, and comes back. */
const there: ClusterOptions = {
  ...{ ...oneTick, ttl: 3, wait: 4 },
  maxEvents: 3,
  sealHasClaim: true,
  claimInViews: true,
  namesOwnersFirst: true,
  staysAway: 2,
  events: ['move', 'stale restart'],
};

const moves: Section = {
  title: 'Cluster: slot moves',
  holds: [
    clusterHolds('there and back, lock and seal in any order', { ...two, events: ['move'] }),
    clusterHolds('a move and a takeover, two of any', { ...two, events: ['move', 'takeover'] }),
    clusterHolds('a move, restarts and a flush, two of any', { ...two, events: ['move', ...restarts] }),
    clusterHolds('the target claims the slots early, or the source serves on', {
      ...one,
      events: ['forced move', 'atomic move'],
    }),
    clusterHolds('the seal has the claim: two of any event but an aborted move', {
      ...two,
      sealHasClaim: true,
      events: anyEvent,
    }),
    clusterHolds('the seal has the claim: three of any event but an aborted move, T = 1', {
      ...oneTick,
      maxEvents: 3,
      sealHasClaim: true,
      events: ['move', ...anyEvent],
    }),
    clusterHolds('the seal has the claim: there, a failover to a stale replica, and back, T = 1', {
      ...oneTick,
      maxEvents: 3,
      sealHasClaim: true,
      events: ['move', 'stale restart'],
    }),
    clusterHolds(
      'views compare the claim, also that of the owner, and slots stay away for longer than H, T = 3',
      there,
    ),
    clusterHolds('the same, moves, restarts and a flush, three of any, T = 1', {
      ...there,
      ...{ ttl: 1, wait: 2 },
      events: ['move', ...restarts],
    }),
  ],
  breaks: [
    clusterBreaks('a migration needs no wait, the target claims the slots early', {
      ...one,
      events: ['forced move'],
      without: ['a migration needs no wait'],
      story: 'the seal is at C and the lock of L at A; C claims the slots and grants X',
    }),
    clusterBreaks('a migration needs no wait, the source is flushed', {
      ...two,
      events: ['move', 'flush'],
      without: ['a migration needs no wait'],
      story: 'the seal has migrated; A is flushed, which no seal shows any more',
    }),
    clusterBreaks('a move is given up half-way', {
      ...one,
      events: ['aborted move'],
      story: 'a limit: the lock of L has migrated and the seal has not; A serves on, and grants X',
    }),
    clusterBreaks('there and back, and the target claims the slots early', {
      ...two,
      events: ['forced move'],
      story:
        'the seal of A goes there and back; the lock stays at A, which deletes it when it hears that the slots are gone',
    }),
    clusterBreaks('there and back, and the source serves on', {
      ...two,
      events: ['atomic move'],
      story: 'A grants L after the copy; the slots come back with the copy, and the seal names A',
    }),
    clusterBreaks('there, a failover to a stale replica, and back', {
      ...two,
      maxEvents: 3,
      slow: true,
      events: ['move', 'stale restart'],
      story: 'C has the lock of L and the seal of A; it loses the lock, and A knows its seal when that comes back',
    }),
    clusterBreaks('views compare the claim, but not that of the owner', {
      ...there,
      without: ['a view does not ask the owner'],
      story:
        'the slots are back at A, which C and D name under its old epoch, since they have not heard of the new one',
    }),
    clusterBreaks('views compare the claim, and slots come back within H', {
      ...there,
      staysAway: 0,
      story: 'a limit: X views; the slots go to C, which loses the lock of L, and come back; A grants X',
    }),
    clusterBreaks('a primary that was replaced claims the slots again', {
      ...two,
      slow: true,
      events: ['takeover', 'reclaim'],
      story:
        'B takes over; A, which has not heard of that, takes the slots back and grants X under its own seal at once',
    }),
  ],
};

/** A lock lives for three ticks, and a vote counts up to one tick after its view. */
const aborted: ClusterOptions = { ...one, ttl: 3, wait: 4, sealHasClaim: true, events: ['aborted move'] };
/** The views of all votes that A grants after the move were sent after the last MIGRATE. */
const abortedLate: ClusterOptions = { ...aborted, masterTimeout: 0, abortAfter: 2 };
const abortedTwice: ClusterOptions = {
  ...oneTick,
  sealHasClaim: true,
  events: ['aborted move', 'takeover', ...restarts],
};

const aborts: Section = {
  title: 'Question v: what would make it safe to give up a move half-way',
  holds: [
    clusterHolds('the operator waits for the ttl after the last MIGRATE, T = 3', { ...aborted, abortAfter: 3 }),
    clusterHolds('the same, and restarts, a flush or a takeover, two of any, T = 1', {
      ...abortedTwice,
      abortAfter: 1,
    }),
    clusterHolds('the scripts that grant compare the number of MIGRATE calls, T = 3', {
      ...aborted,
      abortRule: 'calls in scripts',
    }),
    clusterHolds('the same, and restarts, a flush or a takeover, two of any, T = 1', {
      ...abortedTwice,
      abortRule: 'calls in scripts',
    }),
    clusterHolds('the views compare that number, and the operator waits longer than a vote is younger than its view', {
      ...abortedLate,
      abortRule: 'calls in views',
    }),
    clusterHolds('lock and seal are one key, T = 3', { ...aborted, abortRule: 'one key' }),
  ],
  breaks: [
    clusterBreaks('a mark in a view is unknown data', {
      ...aborted,
      abortRule: 'mark in views',
      story: 'no client asks for a view between the begin of the move and its end; A grants X under its old seal',
    }),
    clusterBreaks(
      'a mark in a view is unknown data, and the operator waits longer than a vote is younger than its view',
      {
        ...abortedLate,
        abortRule: 'mark in views',
        story: 'the same; the view of X is sent after the move was given up, when no trace of it is left at A',
      },
    ),
    clusterBreaks('the views compare the number of MIGRATE calls', {
      ...aborted,
      abortRule: 'calls in views',
      story: 'X views; the lock of L migrates and the move is given up; A grants X, which that view confirms',
    }),
    clusterBreaks('the operator waits for less than the ttl', {
      ...abortedLate,
      story: 'the lock of L still lives at C when A grants X',
    }),
  ],
};

const elections: ClusterOptions = { ...one, view: 'epoch', events: ['election'] };
const live: ClusterOptions = { ...two, events: ['takeover', ...restarts], prompt: { within: 3 } };

const epochs: Section = {
  title: 'Question p: which epoch belongs to a map (an earlier form of Protocol 12.7)',
  holds: [
    clusterHolds('the current epoch and the claims, voters hear of a promotion at once', {
      ...elections,
      view: 'epoch and claims',
      voterMapsAreNew: true,
    }),
    clusterHolds('the largest config epoch in the map, no other primary raises it', {
      ...elections,
      view: 'newest config epoch',
    }),
  ],
  breaks: [
    clusterBreaks('the current epoch, voters hear of a promotion at once', {
      ...elections,
      slow: true,
      voterMapsAreNew: true,
      story:
        'A and C have voted for B, which has not won: L reads their map, with A, under the new epoch, and keeps it',
    }),
    clusterBreaks('the current epoch and the claims, voters hear of a promotion late', {
      ...elections,
      slow: true,
      view: 'epoch and claims',
      story: 'the same, and A and C confirm for as long as they do not hear of B',
    }),
    clusterBreaks('the current epoch and the claims, a takeover without votes', {
      ...elections,
      slow: true,
      view: 'epoch and claims',
      events: ['takeover'],
      story: 'B raises the epoch alone: A and D confirm the old one, B and C the new one',
    }),
    clusterBreaks('the largest config epoch in the map, a slot move raises it elsewhere', {
      ...elections,
      ttl: 1,
      viewAge: 0,
      masterTimeout: 0,
      wait: 1,
      maxEvents: 2,
      slow: true,
      view: 'newest config epoch',
      events: ['election', 'move of other slots'],
      story: 'D takes other slots under the epoch in which B was elected: the map with A looks new',
    }),
    clusterBreaks('the largest config epoch in the map: not live', {
      ...elections,
      view: 'newest config epoch',
      prompt: { within: 4 },
      story: 'an election fails: no map has its epoch, and no vote counts any more',
    }),
  ],
};

const questions: Section = {
  title: 'Questions q to u: what section 12 leaves open',
  holds: [
    clusterHolds('q: W_c is W + H, although votes take up to two ticks', {
      ...one,
      ttl: 3,
      masterTimeout: 2,
      wait: 4,
    }),
    clusterHolds('r: a view compares the owner, and not its config epoch; two takeovers', {
      ...two,
      without: ['a view compares the owner only'],
    }),
    clusterHolds('s: the seal has the claim, and there is no replid', {
      ...two,
      sealHasClaim: true,
      without: ['identity without replid'],
    }),
    clusterHolds('t: no compare-and-set, `from` is computed by the write', {
      ...oneTick,
      events: ['takeover', ...restarts],
      lateSeals: true,
      without: ['a seal is written without compare-and-set'],
    }),
    clusterHolds('u: no wait after moves in which the target claims the slots last', {
      ...two,
      events: ['move'],
      without: ['a migration needs no wait'],
    }),
  ],
  breaks: [],
};

const liveness: Section = {
  title: 'Cluster liveness: votes count again after W_c',
  holds: [
    clusterHolds('a takeover, restarts and a flush, two of any', live, true),
    clusterHolds(
      'the seal has the claim: moves, too',
      { ...live, sealHasClaim: true, events: ['takeover', 'move', 'forced move', 'atomic move', ...restarts] },
      true,
    ),
    clusterHolds('views of the current epoch, an election', { ...elections, prompt: { within: 3 } }, true),
  ],
  breaks: [
    clusterBreaks('a seal is written without compare-and-set', {
      ...live,
      without: ['a seal is written without compare-and-set'],
      story: 'a second seal is written before the first one votes: the wait begins anew',
    }),
  ],
};

/** Half a node timeout is two ticks. */
const noInfo: ClusterOptions = { ...one, view: 'none', nodeTimeout: { ticks: 4, pause: false } };

const fallback: Section = {
  title: 'Cluster: no views, because CLUSTER INFO is forbidden',
  holds: [
    clusterHolds('a lone primary, W_c = W + 2 node timeouts', { ...noInfo, wait: 10 }, true),
    clusterHolds('a lone primary, W_c = W + half a node timeout', { ...noInfo, wait: 4 }, true),
  ],
  breaks: [
    clusterBreaks('a lone primary, W in place of W_c', {
      ...noInfo,
      wait: 2,
      story: 'A is cut off and grants for 1.5 node timeouts; B is elected after one, and sealed at once',
    }),
    clusterBreaks('a primary that stands still, W_c = W + 2 node timeouts', {
      ...noInfo,
      wait: 10,
      nodeTimeout: { ticks: 4, pause: true },
      story: 'a limit: A stands still for longer than that, wakes, and grants what is queued',
    }),
  ],
};

const same: PartitionsOptions = {
  partitions: 2,
  clients: [
    [0, 1],
    [0, 1],
  ],
  ttl: 2,
  losses: 1,
};
const overlapping: PartitionsOptions = { ...same, clients: [[0, 1], [1]] };
const ring: PartitionsOptions = {
  partitions: 3,
  clients: [
    [0, 1],
    [1, 2],
    [0, 2],
  ],
  ttl: 2,
  losses: 0,
};

const partitions: Section = {
  title: 'Cluster: several keys over partitions (Protocol 12.8)',
  holds: [
    partitionsHold('two clients of the same two partitions, T = 3, one loss', { ...same, ttl: 3 }),
    partitionsHold('two partitions against one of them, T = 3, two losses', { ...overlapping, ttl: 3, losses: 2 }),
    partitionsHold('three clients, each of two of three partitions', ring),
    partitionsHold('the same with one loss, T = 1', { ...ring, ttl: 1, losses: 1 }),
  ],
  breaks: [
    partitionsBreak('any order after a refusal', {
      ...same,
      without: ['any order after a refusal'],
      story: 'A has p1 and B has p2: each refuses the other, again and again',
    }),
    partitionsBreak('what was granted is not given back', {
      ...same,
      without: ['what was granted is not given back'],
      story: 'A keeps p2 from its first attempt, and B has p1 in order',
    }),
    partitionsBreak('one partition is enough', {
      ...same,
      without: ['one partition is enough'],
      story: 'A has p1, and B has p2',
    }),
    partitionsBreak('an extension counts if one partition extends', {
      ...overlapping,
      without: ['an extension counts if one partition extends'],
      story: 'p1 extends for A; its key on p2 ends, and B takes it',
    }),
    partitionsBreak('no wait after a loss', {
      ...overlapping,
      without: ['no wait after a loss'],
      story: 'A has both; p2 loses its data and grants B',
    }),
  ],
};

export const clusterSections: readonly Section[] = [
  failover,
  moves,
  epochs,
  questions,
  aborts,
  liveness,
  fallback,
  partitions,
];

function clusterHolds(name: string, options: ClusterOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new ClusterModel(options) };
}

function clusterBreaks(name: string, { story, slow, ...options }: ClusterOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new ClusterModel(options) };
}

function partitionsHold(name: string, options: PartitionsOptions): Configuration {
  return { name, limit: LIMIT, quick: true, model: () => new PartitionsModel(options) };
}

function partitionsBreak(name: string, { story, slow, ...options }: PartitionsOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new PartitionsModel(options) };
}
