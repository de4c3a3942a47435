import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Keyspace } from '../../../../lib/core/keyspace.js';
import {
  GRANTED,
  type MasterReply,
  type MasterRequest,
  type ReplyCallback,
} from '../../../../lib/core/master.interface.js';
import {
  ClusterMap,
  type NodeView,
  parseNodes,
  partitionOf,
  hashSlotOf,
  TAGS,
} from '../../../../lib/redis/cluster/cluster-map.js';
import { ClusterNames } from '../../../../lib/redis/cluster/cluster-names.js';
import { type PartitionRequest, split, SplitRequest } from '../../../../lib/redis/cluster/split-request.js';
import { acquiring, drawing, extending } from '../../../support/ask.js';

const THIRDS = ['0-5460', '5461-10922', '10923-16383'];

/** What `self` knows: the primaries in the order of their slots, each as `id:epoch`. */
function view(self: string, primaries: readonly string[], slots: readonly string[] = THIRDS): NodeView {
  const lines = primaries.map((primary, index) => {
    const [id = '', epoch] = primary.split(':');
    const flags = id === self ? 'myself,master' : 'master';
    return `${id} 10.0.0.1:${7000 + index}@17000 ${flags} - 0 0 ${epoch} connected ${slots[index] ?? ''}`;
  });
  return parseNodes(lines.join('\n'));
}

const ALL = ['a:1', 'b:2', 'c:3'];
/** A replica of the first primary has taken its place. */
const PROMOTED = ['x:4', 'b:2', 'c:3'];
const all = ['a', 'b', 'c'].map((self) => view(self, ALL));

describe('ClusterMap', () => {
  let map: ClusterMap;
  beforeEach(() => void (map = new ClusterMap(true)));

  it('takes the claims that a majority of the primaries knows', () => {
    const { confirmed, changed } = map.learn(all);
    expect([confirmed.size, changed.length]).toEqual([256, 256]);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
    expect(map.partitionsOf('c')).toHaveLength(85);
    expect([...map.primaries.keys()]).toEqual(['a', 'b', 'c']);
    expect(map.learn(all).changed).toEqual([]);
  });

  it('learns nothing from less than a majority, or from replicas', () => {
    expect(map.learn([view('a', ALL)]).confirmed.size).toBe(0);
    expect(map.learn([view('a', ALL), view('replica', ALL), view('other', ALL)]).confirmed.size).toBe(0);
    expect(map.claimOf(0)).toBeUndefined();
  });

  it('names the primaries that too few answers name: most of those that it knew may be replicas by now', () => {
    map.learn(all);
    const promoted = ['x:4', 'b:2', 'z:5'];
    map.learn([view('a', promoted), view('b', promoted), view('c', promoted)]);
    expect([...map.primaries.keys()]).toEqual(['a', 'b', 'c']);
    expect(map.candidates.map(({ owner }) => owner)).toEqual(['b', 'x', 'z']);
    map.learn(['x', 'b', 'z'].map((self) => view(self, promoted)));
    expect([...map.primaries.keys()]).toEqual(['b', 'x', 'z']);
    expect(map.candidates).toEqual([]);
  });

  it('counts one node once, under however many addresses it is reached', () =>
    expect(map.learn([view('a', ALL), view('a', ALL)]).confirmed.size).toBe(0));

  it('does not confirm an owner that half of the primaries do not know any more', () => {
    map.learn(all);
    const { confirmed, changed } = map.learn([view('x', PROMOTED), view('b', PROMOTED), view('c', PROMOTED)]);
    expect(changed).toEqual(map.partitionsOf('x'));
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
    expect(confirmed.has(0)).toBe(true);
    expect(map.learn([view('a', ALL), view('c', PROMOTED)]).confirmed.has(0)).toBe(false);
  });

  // Protocol 12.7
  it('does not confirm a claim that the owner itself has not answered, or has replaced', () => {
    const [a, b, c] = all as [NodeView, NodeView, NodeView];
    expect(map.learn([b, c]).confirmed.has(0)).toBe(false);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
    expect(map.learn([a, b]).confirmed.has(0)).toBe(true);
    // Its slots went away and came back: it has a new epoch, of which the others have not heard.
    const { confirmed } = map.learn([view('a', ['a:4', 'b:2', 'c:3']), b, c]);
    expect([confirmed.has(0), confirmed.has(255)]).toEqual([false, true]);
  });

  it('prefers the newer of two claims that each have a majority, since both sit on one seat', () => {
    map.learn([view('a', ALL), view('b', ALL), view('x', PROMOTED), view('c', PROMOTED)]);
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
  });

  // Protocol 12.7
  it('allows a seal only if enough primaries other than the owner know its claim', () => {
    map.learn([view('a', ALL), view('b', ALL)]);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
    expect(map.maySeal(0)).toBe(false);
    // Of the partitions of c, both are others.
    expect(map.maySeal(255)).toBe(true);
    map.learn(all);
    expect(map.maySeal(0)).toBe(true);
    map.learn([view('a', ALL), view('b', ALL)]);
    expect(map.maySeal(0)).toBe(true);
    const raised = ['a:9', 'b:2', 'c:3'];
    map.learn([view('a', raised), view('b', raised)]);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 9 });
    expect(map.maySeal(0)).toBe(false);
  });

  it('allows a seal on the only primary of a cluster', () => {
    map.learn([view('a', ['a:1'], ['0-16383'])]);
    expect(map.maySeal(0)).toBe(true);
  });

  it('counts the same owner under a new epoch as another claim', () => {
    map.learn(all);
    const raised = ['a:5', 'b:2', 'c:3'];
    expect(map.learn(['a', 'b', 'c'].map((self) => view(self, raised))).changed).toEqual(map.partitionsOf('a'));
  });

  it('keeps the claim of a partition that no node claims any more, without confirming it', () => {
    map.learn(all);
    const gone = ['b:2', 'c:3'];
    const slots = THIRDS.slice(1);
    const { confirmed } = map.learn([view('b', gone, slots), view('c', gone, slots)]);
    expect([confirmed.has(0), confirmed.has(255)]).toEqual([false, true]);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
  });

  it('takes the newest claim of any primary where no majority is asked for', () => {
    map = new ClusterMap(false);
    expect(map.learn([view('a', ALL)]).confirmed.size).toBe(256);
    map.learn([view('a', ALL), view('x', PROMOTED)]);
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
  });

  it.each([true, false])(
    'counts no node of two clusters, in whatever order they answer (majority: %s)',
    (asksMajority) => {
      map = new ClusterMap(asksMajority);
      const others = ['x', 'y', 'z'].map((self) => view(self, ['x:1', 'y:2', 'z:3']));
      map.learn(all);
      expect(map.fault).toBeUndefined();
      expect(map.learn([...all, ...others]).confirmed.size).toBe(0);
      expect(map.fault).toMatch('its nodes belong to several clusters');
      // The other cluster may merely not have answered yet.
      expect(map.learn(all).confirmed.size).toBe(0);
    },
  );

  it('takes nodes that know one another by way of a third one, and leaves out a new one without slots', () => {
    const [first, middle, last] = [view('a', ['a:1', 'b:2']), view('b', ALL), view('c', ['', 'b:2', 'c:3'])];
    map.learn([first, last, middle, parseNodes('new 10.0.0.1:7009@17009 myself,master - 0 0 0 connected')]);
    expect(map.fault).toBeUndefined();
  });
});

// Processes of different versions agree on the slot of a key and on the tag of its partition.
describe('The slot of a key', () => {
  it.each([
    ['', 0],
    ['123456789', 12_739],
    ['foo', 12_182],
    ['hello', 866],
    ['ÿ', 5_427],
    ['€uro', 997],
  ])('%j is that of CRC-16/XMODEM: %i', (key, slot) => expect(hashSlotOf(key)).toBe(slot));

  it.each([
    ['{hello}', 'hello'],
    ['a{hello}b', 'hello'],
    ['{a}{b}', 'a'],
    ['{a}b}', 'a'],
    ['}{a}', 'a'],
    ['{{a}}', '{a'],
    ['x{€}y', '€'],
    ['é{foo}', 'foo'],
  ])('%j is that of its hash tag %j', (key, tag) => expect(hashSlotOf(key)).toBe(hashSlotOf(tag)));

  // With another name around it, a hash tag would make no difference.
  it.each(['{}', '{}}', 'a{}{b}', '{', '}', 'a{b', 'a}b{c'])('%j is that of the whole key', (key) =>
    expect(hashSlotOf(key)).not.toBe(hashSlotOf(`x${key}`)),
  );
});

// Protocol 12.1
it('The partition of a resource has 64 slots', () => {
  for (const resource of ['', 'a', 'hello', '{hello}', 'order:1', 'order:2', '€']) {
    const first = 64 * partitionOf(resource);
    expect(hashSlotOf(resource)).toBeGreaterThanOrEqual(first);
    expect(hashSlotOf(resource)).toBeLessThan(first + 64);
  }
});

// Protocol 12.1
describe('The tag of a partition', () => {
  it('has the first slot of its partition, as a hash tag, too', () => {
    const slots = Array.from({ length: 256 }, (_, partition) => 64 * partition);
    expect([TAGS.map(hashSlotOf), TAGS.map((tag) => hashSlotOf(`locks:{${tag}}a{b}`))]).toEqual([slots, slots]);
    expect(TAGS.map(partitionOf)).toEqual(Array.from(slots.keys()));
  });

  it('never changes', () =>
    expect(createHash('sha256').update(TAGS.join(' ')).digest('hex')).toMatch(/^bb241491cd73ce37/));
});

const names = new ClusterNames('lock:');
const keyspace = new Keyspace('lock:');
const RESOURCES = ['one', 'two', 'three'];
const KEYS = RESOURCES.map((resource) => keyspace.keyOf(resource));
const parts = (request: MasterRequest) => split(request, names, (partition, waiter) => `${waiter}@${partition}`);

/** Partitions that record what they are sent, and answer by hand. */
class Stage {
  readonly sent: { readonly part: PartitionRequest; readonly reply: ReplyCallback }[] = [];
  readonly answers: MasterReply[] = [];

  constructor(request: MasterRequest, inTurn = false) {
    const send = (part: PartitionRequest, reply: ReplyCallback): void => void this.sent.push({ part, reply });
    new SplitRequest(request, parts(request), names, send, (answer) => this.answers.push(answer)).run(inTurn);
  }

  get partitions(): number[] {
    return this.sent.map(({ part }) => part.partition);
  }

  /** Answers the requests in the order in which they were sent. */
  answer(...answers: readonly MasterReply[]): void {
    const open = this.sent.splice(0, answers.length);
    answers.forEach((answer, index) => open[index]?.reply(answer));
  }
}

describe('split', () => {
  it('puts all names of a resource into the partition of the resource', () => {
    const queue = { queues: [keyspace.queueOf('one')], waiter: 'w', waited: 1 };
    const sharing = { barriers: [keyspace.barrierOf('one')], waited: 1 };
    const [part, other] = parts(acquiring([keyspace.keyOf('one')], 'token', { queue, sharing }));
    expect(other).toBeUndefined();
    const partition = names.partitionOf(keyspace.keyOf('one'));
    expect(part?.partition).toBe(partition);
    const stored = (name: string): string => names.inPartition(partition, name);
    expect(part?.request).toMatchObject({
      keys: [stored(keyspace.keyOf('one'))],
      queue: { queues: [stored(keyspace.queueOf('one'))], waiter: `w@${partition}` },
      sharing: { barriers: [stored(keyspace.barrierOf('one'))] },
    });
    const others = [
      keyspace.queueOf('one'),
      keyspace.barrierOf('one'),
      keyspace.stateOf('one'),
      keyspace.slotOf('one', 3),
    ];
    expect(others.map((name) => names.partitionOf(name))).toEqual(others.map(() => partition));
  });

  it('divides the keys and what belongs to each, in ascending order of the partitions', () => {
    const request = drawing(KEYS, 'token', { counters: [1, 2, 3] });
    const divided = parts(request);
    const partitions = divided.map(({ partition }) => partition);
    expect(partitions).toEqual([...partitions].sort((a, b) => a - b));
    const pairs = divided.flatMap(({ request: part }) => {
      const { keys, counters } = part as typeof request;
      return keys.map((key, index) => [names.withoutTag(key), counters[index]]);
    });
    expect(new Map(pairs as [string, number][])).toEqual(new Map(KEYS.map((key, index) => [key, index + 1])));
  });

  it('keeps resources with one hash tag together', () =>
    expect(parts(acquiring(['lock:{a}1', 'lock:{a}2'], 'token'))).toHaveLength(1));

  it('withdraws the parts together with the request', () => {
    const request = acquiring(KEYS, 'token');
    const [part] = parts(request);
    request.withdrawn = true;
    expect(part?.request).toMatchObject({ withdrawn: true });
  });
});

// Protocol 12.8
describe('A request to several partitions', () => {
  it('is granted when every partition has granted it', () => {
    const stage = new Stage(acquiring(KEYS, 'token'));
    expect(stage.sent).toHaveLength(3);
    stage.answer(GRANTED, GRANTED);
    expect(stage.answers).toEqual([]);
    stage.answer({ kind: 'granted', hasWaiters: true });
    expect(stage.answers).toEqual([{ kind: 'granted', hasWaiters: true }]);
  });

  it('is refused with the longest remaining time, and gives back what was granted', () => {
    const stage = new Stage(acquiring(KEYS, 'token'));
    const [first] = stage.partitions;
    stage.answer(GRANTED, { kind: 'held', remaining: 5 }, { kind: 'held', remaining: 9 });
    expect(stage.answers).toEqual([{ kind: 'held', remaining: 9 }]);
    expect(stage.partitions).toEqual([first]);
    const [{ part }] = stage.sent as [(typeof stage.sent)[0]];
    const stored = 'keys' in part.request ? part.request.keys[0] : '';
    const resource = keyspace.resourceOf(names.withoutTag(stored ?? ''));
    const queues = [names.inPartition(part.partition, keyspace.queueOf(resource))];
    expect(part.request).toMatchObject({ op: 'release', token: 'token', queues, keepFor: 0 });
  });

  it('gives back what may have been granted, too', () => {
    const stage = new Stage(acquiring(KEYS, 'token'));
    const [, second] = stage.partitions;
    stage.answer(
      { kind: 'unreachable', reason: 'down', sent: false },
      { kind: 'quarantined', reason: 'lost', remaining: 1, sent: true },
      { kind: 'held', remaining: 5 },
    );
    expect(stage.partitions).toEqual([second]);
    expect(stage.answers).toMatchObject([{ kind: 'held' }]);
  });

  it('reports a partition that cannot be asked if no key is held', () => {
    const stage = new Stage(acquiring(KEYS, 'token'));
    stage.answer(GRANTED, { kind: 'unreachable', reason: 'down', sent: false }, GRANTED);
    expect(stage.answers).toEqual([{ kind: 'unreachable', reason: 'down', sent: false }]);
  });

  it('asks in turn after a refusal, each partition only when the one before has granted', () => {
    const stage = new Stage(acquiring(KEYS, 'token'), true);
    const [lowest] = parts(acquiring(KEYS, 'token'));
    expect(stage.partitions).toEqual([lowest?.partition]);
    stage.answer(GRANTED);
    expect(stage.sent).toHaveLength(1);
    stage.answer({ kind: 'held', remaining: 1 });
    expect(stage.answers).toEqual([{ kind: 'held', remaining: 1 }]);
    expect(stage.sent.map(({ part }) => part.request.op)).toEqual(['release']);
  });

  it('asks no further partition once it is withdrawn, and gives back what it has', () => {
    const request = acquiring(KEYS, 'token');
    const stage = new Stage(request, true);
    request.withdrawn = true;
    stage.answer(GRANTED);
    expect(stage.answers).toEqual([{ kind: 'timeout', sent: false }]);
    expect(stage.sent.map(({ part }) => part.request.op)).toEqual(['release']);
  });

  it('is extended only if every partition has extended it, and reports a key that was set again', () => {
    const stage = new Stage(extending(KEYS, 'token'));
    stage.answer(GRANTED, { kind: 'granted', healed: true }, GRANTED);
    expect(stage.answers).toEqual([{ kind: 'granted', healed: true }]);
    const refused = new Stage(extending(KEYS, 'token'));
    refused.answer(GRANTED, { kind: 'held', remaining: 1 }, GRANTED);
    expect(refused).toMatchObject({ answers: [{ kind: 'held' }], sent: [] });
  });

  it('draws a token that is the same in every partition', () => {
    const stage = new Stage(drawing(KEYS, 'token', { counters: [1, 2, 3] }));
    const [first, , third] = stage.partitions;
    stage.answer({ kind: 'granted', fence: 5 }, { kind: 'granted', fence: 9 }, { kind: 'granted', fence: 7 });
    expect(stage.answers).toEqual([]);
    expect(stage.partitions).toEqual([first, third]);
    expect(stage.sent[0]?.part.request).toMatchObject({ op: 'draw', atLeast: 9, isFirst: false });
    stage.answer({ kind: 'granted', fence: 9 }, { kind: 'granted', fence: 9 });
    expect(stage.answers).toEqual([{ kind: 'granted', fence: 9 }]);
  });

  it('draws no token if a partition that has to be raised refuses', () => {
    const stage = new Stage(drawing(KEYS, 'token', { counters: [1, 2, 3] }));
    stage.answer({ kind: 'granted', fence: 9 }, { kind: 'granted', fence: 9 }, { kind: 'granted', fence: 7 });
    stage.answer({ kind: 'held', remaining: undefined });
    expect(stage.answers).toEqual([{ kind: 'held', remaining: undefined }]);
  });
});
