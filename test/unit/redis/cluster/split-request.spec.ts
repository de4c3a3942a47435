import { describe, expect, it } from '@jest/globals';
import type { MasterReply, MasterRequest, ReplyCallback } from '../../../../lib/core/master.interface.js';
import { GRANTED } from '../../../../lib/core/master.interface.js';
import { Keyspace } from '../../../../lib/core/keyspace.js';
import { ClusterNames } from '../../../../lib/redis/cluster/cluster-names.js';
import { type PartitionRequest, split } from '../../../../lib/redis/cluster/request-parts.js';
import { SplitRequest } from '../../../../lib/redis/cluster/split-request.js';
import { acquiring, drawing, extending } from '../../../support/ask.js';

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
    for (const name of [
      keyspace.queueOf('one'),
      keyspace.barrierOf('one'),
      keyspace.stateOf('one'),
      keyspace.slotOf('one', 3),
    ])
      expect(names.partitionOf(name)).toBe(partition);
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

  it('keeps resources with one hash tag together', () => {
    expect(parts(acquiring(['lock:{a}1', 'lock:{a}2'], 'token'))).toHaveLength(1);
  });

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
    expect(refused.answers).toMatchObject([{ kind: 'held' }]);
    expect(refused.sent).toEqual([]);
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
