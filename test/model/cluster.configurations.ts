// The configurations of section 12.
import { ClusterModel } from './cluster.model.js';
import { type ClusterOptions } from './cluster.options.js';
import { PartitionsModel, type PartitionsOptions } from './partitions.model.js';
import { configurationsOf, type Section } from './section.js';

const cluster = configurationsOf((options: ClusterOptions) => new ClusterModel(options));
const partitions = configurationsOf((options: PartitionsOptions) => new PartitionsModel(options));

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

/** A lock lives for three ticks, and a vote counts up to one tick after its view. */
const aborted: ClusterOptions = { ...one, ttl: 3, wait: 4, sealHasClaim: true, events: ['aborted move'] };
/** The views of all votes that A grants after the move were sent after the last MIGRATE. */
const abortedLate: ClusterOptions = { ...aborted, masterTimeout: 0, abortAfter: 2 };
const abortedTwice: ClusterOptions = {
  ...oneTick,
  sealHasClaim: true,
  events: ['aborted move', 'takeover', ...restarts],
};

const elections: ClusterOptions = { ...one, view: 'epoch', events: ['election'] };
const live: ClusterOptions = { ...two, events: ['takeover', ...restarts], prompt: { within: 3 } };

/** Half a node timeout is two ticks. */
const noInfo: ClusterOptions = { ...one, view: 'none', nodeTimeout: { ticks: 4, pause: false } };

const [p12, p23, p13] = [
  [0, 1],
  [1, 2],
  [0, 2],
] as const;
const same: PartitionsOptions = { partitions: 2, clients: [p12, p12], ttl: 2, losses: 1 };
const overlapping: PartitionsOptions = { ...same, clients: [p12, [1]] };
const ring: PartitionsOptions = { partitions: 3, clients: [p12, p23, p13], ttl: 2, losses: 0 };

export const clusterSections: readonly Section[] = [
  {
    title: 'Cluster: failovers and restarts behind one master (section 12)',
    holds: [
      ...cluster.holds(one, { 'one takeover': { quick: true } }),
      ...cluster.holds(two, { 'two takeovers': {} }),
      ...cluster.holds(oneTick, { 'three takeovers, T = 1': { maxEvents: 3 } }),
      ...cluster.holds(two, { 'a takeover, restarts and a flush, two of any': { events: ['takeover', ...restarts] } }),
      ...cluster.holds(one, { 'one takeover, T = 3, H = 2': { ttl: 3, viewAge: 2, wait: 5 } }),
      ...cluster.holds(oneTick, { 'five primaries, two takeovers, T = 1': { primaries: 5 } }),
      ...cluster.holds(two, {
        'one primary, two restarts or flushes': { primaries: 1, events: restarts, quick: true },
      }),
      ...cluster.holds(lateSeals, { 'seals that arrive late, two restarts or flushes': { quick: true } }),
      ...cluster.holds(oneTick, {
        'seals that arrive late, a takeover, restarts and a flush, two of any, T = 1': {
          events: ['takeover', ...restarts],
          lateSeals: true,
        },
      }),
    ],
    breaks: [
      ...cluster.breaks(one, {
        'no guard': {
          events: ['empty restart'],
          story: 'L on A; A restarts empty within the node timeout, and grants X',
        },
        'W in place of W_c': {
          wait: 2,
          story: 'L views; B takes over and is sealed; L, still on A, is granted; the seal of B ends before that lock',
        },
        'a view older than H counts': { viewAge: 2, story: 'the same, with W_c and an older view' },
        'no view': 'A stands still, B takes over and grants after W_c; A wakes and grants, too',
        'a seal is written on the word of one node (the map in place of the epoch)':
          'only B knows that it took over, and is sealed; A, C and D confirm the view of X on A for ever',
        'a seal is written on the word of a majority with the owner in it':
          'B and C know that B took over, A and D do not: each side is a majority',
      }),
      ...cluster.breaks(two, {
        'a seal is written whatever its process claims': {
          quick: false,
          story:
            'A has the slots again, which only A knows; a client with the first map seals A, and B still gets its views',
        },
        'a seal is written when the others name the owner, under any config epoch': {
          quick: false,
          story: 'A has the slots again; D, which has not heard of B, names A, then hears of B, and confirms it, too',
        },
      }),
      ...cluster.breaks(one, {
        'a vote counts although the map has changed since':
          'X asks A, reads the map with B, and confirms the vote of A by a view for B',
        'identity is the nonce only': 'L on A; the replica B has the seal and not the key, and grants X',
        'no run id, and a replid that was compared before': {
          events: ['stale restart'],
          story:
            'L on A; A restarts within the node timeout from an old copy, behind a connection that survives in a proxy',
        },
      }),
      ...cluster.breaks(two, {
        'no replid': 'A, B, A without a new process: the seal of A comes back with the data of B, and the key is gone',
      }),
      ...cluster.breaks(one, {
        'validity counts from the answer': 'a lock that A grants late ends after the quarantine of B',
        'extension of a present key counts in a quarantine':
          'B has a copy of the key and extends it for L; on A the key ends, and A grants X',
      }),
      ...cluster.breaks(lateSeals, {
        '`from` is computed when the data is read':
          'X reads no seal; L writes one and holds; a flush; the seal of X arrives, and its `from` has passed',
      }),
      ...cluster.breaks(one, {
        'an only primary, and its replica takes over': {
          primaries: 1,
          story: 'an assumption: there is no other primary that could confirm or deny',
        },
      }),
    ],
  },
  {
    title: 'Cluster: slot moves',
    holds: [
      ...cluster.holds(two, {
        'there and back, lock and seal in any order': { events: ['move'] },
        'a move and a takeover, two of any': { events: ['move', 'takeover'] },
        'a move, restarts and a flush, two of any': { events: ['move', ...restarts] },
      }),
      ...cluster.holds(one, {
        'the target claims the slots early, or the source serves on': { events: ['forced move', 'atomic move'] },
      }),
      ...cluster.holds(two, {
        'the seal has the claim: two of any event but an aborted move': { sealHasClaim: true, events: anyEvent },
      }),
      ...cluster.holds(oneTick, {
        'the seal has the claim: three of any event but an aborted move, T = 1': {
          maxEvents: 3,
          sealHasClaim: true,
          events: ['move', ...anyEvent],
        },
        'the seal has the claim: there, a failover to a stale replica, and back, T = 1': {
          maxEvents: 3,
          sealHasClaim: true,
          events: ['move', 'stale restart'],
        },
      }),
      ...cluster.holds(there, {
        'views compare the claim, also that of the owner, and slots stay away for longer than H, T = 3': {},
        'the same, moves, restarts and a flush, three of any, T = 1': {
          ttl: 1,
          wait: 2,
          events: ['move', ...restarts],
        },
      }),
    ],
    breaks: [
      ...cluster.breaks(one, {
        'a migration needs no wait, the target claims the slots early': {
          events: ['forced move'],
          without: ['a migration needs no wait'],
          story: 'the seal is at C and the lock of L at A; C claims the slots and grants X',
        },
      }),
      ...cluster.breaks(two, {
        'a migration needs no wait, the source is flushed': {
          events: ['move', 'flush'],
          without: ['a migration needs no wait'],
          story: 'the seal has migrated; A is flushed, which no seal shows any more',
        },
      }),
      ...cluster.breaks(one, {
        'a move is given up half-way': {
          events: ['aborted move'],
          story: 'a limit: the lock of L has migrated and the seal has not; A serves on, and grants X',
        },
      }),
      ...cluster.breaks(two, {
        'there and back, and the target claims the slots early': {
          events: ['forced move'],
          story:
            'the seal of A goes there and back; the lock stays at A, which deletes it when it hears that the slots are gone',
        },
        'there and back, and the source serves on': {
          events: ['atomic move'],
          story: 'A grants L after the copy; the slots come back with the copy, and the seal names A',
        },
        'there, a failover to a stale replica, and back': {
          maxEvents: 3,
          quick: false,
          events: ['move', 'stale restart'],
          story: 'C has the lock of L and the seal of A; it loses the lock, and A knows its seal when that comes back',
        },
      }),
      ...cluster.breaks(there, {
        'views compare the claim, but not that of the owner':
          'the slots are back at A, which C and D name under its old epoch, since they have not heard of the new one',
        'views compare the claim, and slots come back within H': {
          staysAway: 0,
          story: 'a limit: X views; the slots go to C, which loses the lock of L, and come back; A grants X',
        },
      }),
      ...cluster.breaks(two, {
        'a primary that was replaced claims the slots again': {
          quick: false,
          events: ['takeover', 'reclaim'],
          story:
            'B takes over; A, which has not heard of that, takes the slots back and grants X under its own seal at once',
        },
      }),
    ],
  },
  {
    title: 'Question p: which epoch belongs to a map (an earlier form of Protocol 12.7)',
    holds: cluster.holds(elections, {
      'the current epoch and the claims, voters hear of a promotion at once': {
        view: 'epoch and claims',
        voterMapsAreNew: true,
      },
      'the largest config epoch in the map, no other primary raises it': { view: 'newest config epoch' },
    }),
    breaks: cluster.breaks(elections, {
      'the current epoch, voters hear of a promotion at once': {
        quick: false,
        voterMapsAreNew: true,
        story:
          'A and C have voted for B, which has not won: L reads their map, with A, under the new epoch, and keeps it',
      },
      'the current epoch and the claims, voters hear of a promotion late': {
        quick: false,
        view: 'epoch and claims',
        story: 'the same, and A and C confirm for as long as they do not hear of B',
      },
      'the current epoch and the claims, a takeover without votes': {
        quick: false,
        view: 'epoch and claims',
        events: ['takeover'],
        story: 'B raises the epoch alone: A and D confirm the old one, B and C the new one',
      },
      'the largest config epoch in the map, a slot move raises it elsewhere': {
        ttl: 1,
        viewAge: 0,
        masterTimeout: 0,
        wait: 1,
        maxEvents: 2,
        quick: false,
        view: 'newest config epoch',
        events: ['election', 'move of other slots'],
        story: 'D takes other slots under the epoch in which B was elected: the map with A looks new',
      },
      'the largest config epoch in the map: not live': {
        view: 'newest config epoch',
        prompt: { within: 4 },
        story: 'an election fails: no map has its epoch, and no vote counts any more',
      },
    }),
  },
  {
    title: 'Questions q to u: what section 12 leaves open',
    holds: [
      ...cluster.holds(one, {
        'q: W_c is W + H, although votes take up to two ticks': { ttl: 3, masterTimeout: 2, wait: 4 },
      }),
      ...cluster.holds(two, {
        'r: a view compares the owner, and not its config epoch; two takeovers': {
          without: ['a view compares the owner only'],
        },
        's: the seal has the claim, and there is no replid': { sealHasClaim: true, without: ['no replid'] },
      }),
      ...cluster.holds(oneTick, {
        't: no compare-and-set, `from` is computed by the write': {
          events: ['takeover', ...restarts],
          lateSeals: true,
          without: ['a seal is written without compare-and-set'],
        },
      }),
      ...cluster.holds(two, {
        'u: no wait after moves in which the target claims the slots last': {
          events: ['move'],
          without: ['a migration needs no wait'],
        },
      }),
    ],
    breaks: [],
  },
  {
    title: 'Question v: what would make it safe to give up a move half-way',
    holds: [
      ...cluster.holds(aborted, { 'the operator waits for the ttl after the last MIGRATE, T = 3': { abortAfter: 3 } }),
      ...cluster.holds(abortedTwice, {
        'the same, and restarts, a flush or a takeover, two of any, T = 1': { abortAfter: 1 },
      }),
      ...cluster.holds(aborted, {
        'the scripts that grant compare the number of MIGRATE calls, T = 3': { abortRule: 'calls in scripts' },
      }),
      ...cluster.holds(abortedTwice, {
        'the same, and restarts, a flush or a takeover, two of any, T = 1': { abortRule: 'calls in scripts' },
      }),
      ...cluster.holds(abortedLate, {
        'the views compare that number, and the operator waits longer than a vote is younger than its view': {
          abortRule: 'calls in views',
        },
      }),
      ...cluster.holds(aborted, { 'lock and seal are one key, T = 3': { abortRule: 'one key' } }),
    ],
    breaks: [
      ...cluster.breaks(aborted, {
        'a mark in a view is unknown data': {
          abortRule: 'mark in views',
          story: 'no client asks for a view between the begin of the move and its end; A grants X under its old seal',
        },
      }),
      ...cluster.breaks(abortedLate, {
        'a mark in a view is unknown data, and the operator waits longer than a vote is younger than its view': {
          abortRule: 'mark in views',
          story: 'the same; the view of X is sent after the move was given up, when no trace of it is left at A',
        },
      }),
      ...cluster.breaks(aborted, {
        'the views compare the number of MIGRATE calls': {
          abortRule: 'calls in views',
          story: 'X views; the lock of L migrates and the move is given up; A grants X, which that view confirms',
        },
      }),
      ...cluster.breaks(abortedLate, {
        'the operator waits for less than the ttl': 'the lock of L still lives at C when A grants X',
      }),
    ],
  },
  {
    title: 'Cluster liveness: votes count again after W_c',
    holds: [
      ...cluster.holds(live, {
        'a takeover, restarts and a flush, two of any': { quick: true },
        'the seal has the claim: moves, too': {
          sealHasClaim: true,
          events: ['takeover', 'move', 'forced move', 'atomic move', ...restarts],
          quick: true,
        },
      }),
      ...cluster.holds(elections, {
        'views of the current epoch, an election': { prompt: { within: 3 }, quick: true },
      }),
    ],
    breaks: cluster.breaks(live, {
      'a seal is written without compare-and-set':
        'a second seal is written before the first one votes: the wait begins anew',
    }),
  },
  {
    title: 'Cluster: no views, because CLUSTER INFO is forbidden',
    holds: cluster.holds(noInfo, {
      'a lone primary, W_c = W + 2 node timeouts': { wait: 10, quick: true },
      'a lone primary, W_c = W + half a node timeout': { wait: 4, quick: true },
    }),
    breaks: cluster.breaks(noInfo, {
      'a lone primary, W in place of W_c': {
        wait: 2,
        story: 'A is cut off and grants for 1.5 node timeouts; B is elected after one, and sealed at once',
      },
      'a primary that stands still, W_c = W + 2 node timeouts': {
        wait: 10,
        nodeTimeout: { ticks: 4, pause: true },
        story: 'a limit: A stands still for longer than that, wakes, and grants what is queued',
      },
    }),
  },
  {
    title: 'Cluster: several keys over partitions (Protocol 12.8)',
    holds: [
      ...partitions.holds(same, { 'two clients of the same two partitions, T = 3, one loss': { ttl: 3, quick: true } }),
      ...partitions.holds(overlapping, {
        'two partitions against one of them, T = 3, two losses': { ttl: 3, losses: 2, quick: true },
      }),
      ...partitions.holds(ring, {
        'three clients, each of two of three partitions': { quick: true },
        'the same with one loss, T = 1': { ttl: 1, losses: 1, quick: true },
      }),
    ],
    breaks: [
      ...partitions.breaks(same, {
        'any order after a refusal': 'A has p1 and B has p2: each refuses the other, again and again',
        'what was granted is not given back': 'A keeps p2 from its first attempt, and B has p1 in order',
        'one partition is enough': 'A has p1, and B has p2',
      }),
      ...partitions.breaks(overlapping, {
        'an extension counts if one partition extends': 'p1 extends for A; its key on p2 ends, and B takes it',
        'no wait after a loss': 'A has both; p2 loses its data and grants B',
      }),
    ],
  },
];
