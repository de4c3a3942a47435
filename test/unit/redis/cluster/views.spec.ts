import { beforeEach, describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';
import type { ClusterNode } from '../../../../lib/redis/cluster/cluster-node.js';
import { isSameClaim, type NodeView, parseNodes, viewFromSlots } from '../../../../lib/redis/cluster/cluster-map.js';
import { PartitionRecord, reasonForSeal, type Seal, sealFrom } from '../../../../lib/redis/cluster/partition-guard.js';
import { VIEW_AGE, Views } from '../../../../lib/redis/cluster/views.js';
import { parseInfo } from '../../../../lib/redis/replies.js';

const NODES = [
  'a1 10.0.0.1:7000@17000 myself,master - 0 0 3 connected 0-8191 [8192->-b2] [93-<-b2]',
  'b2 10.0.0.2:7001@17001,redis-b.internal master - 0 1 5 connected 8192-16382 16383',
  'c3 10.0.0.3:7002@17002,,shard-id=77 slave a1 0 1 3 connected',
  'd4 :0@0 master,noaddr - 0 1 1 disconnected',
].join('\n');

describe('parseNodes', () => {
  const view = parseNodes(`${NODES}\n`);

  it('names the node that answers, and all nodes', () => {
    expect(view).toMatchObject({ self: 'a1', ids: ['a1', 'b2', 'c3', 'd4'] });
    expect(parseNodes(NODES.replaceAll('myself,master', 'master').replace('slave a1', 'myself,slave a1')).self).toBe(
      'c3',
    );
  });

  it('lists the primaries that have slots, by host name where there is one', () => {
    expect(view.primaries).toEqual([
      { owner: 'a1', epoch: 3, host: '10.0.0.1', port: 7000, ranges: [[0, 8191]] },
      {
        ...{ owner: 'b2', epoch: 5, host: 'redis-b.internal', port: 7001 },
        ranges: [
          [8192, 16_382],
          [16_383, 16_383],
        ],
      },
    ]);
  });

  it('gives each partition to the owner of its first slot', () => {
    expect(view.claims).toHaveLength(256);
    expect(view.claims[0]).toMatchObject({ owner: 'a1', epoch: 3 });
    expect(view.claims[127]).toMatchObject({ owner: 'a1' });
    expect(view.claims[128]).toMatchObject({ owner: 'b2', epoch: 5 });
    expect(view.claims[255]).toMatchObject({ owner: 'b2' });
  });

  it('knows no owner of a partition whose slot has none', () =>
    expect(parseNodes(NODES.replace('0-8191', '1-8191')).claims[0]).toBeUndefined());

  it('reads an IPv6 address', () => {
    const [primary] = parseNodes('a1 ::1:7000@17000 myself,master - 0 0 3 connected 0-16383').primaries;
    expect(primary).toMatchObject({ host: '::1', port: 7000 });
  });

  it('leaves the host empty if the node does not announce one', () => {
    const [primary] = parseNodes('a1 :7000@17000 myself,master - 0 0 3 connected 0-16383').primaries;
    expect(primary).toMatchObject({ host: '', port: 7000 });
  });
});

it('viewFromSlots joins the ranges of a primary, and knows no epochs', () => {
  const { primaries, claims } = viewFromSlots([
    [0, 99, ['10.0.0.1', 7000, 'a1'], ['10.0.0.3', 7002, 'c3']],
    [200, 16_383, ['10.0.0.1', 7000, 'a1']],
    [100, 199, [null, 7001, 'b2']],
  ]);
  expect(primaries).toEqual([
    {
      ...{ owner: 'a1', epoch: 0, host: '10.0.0.1', port: 7000 },
      ranges: [
        [0, 99],
        [200, 16_383],
      ],
    },
    { owner: 'b2', epoch: 0, host: '', port: 7001, ranges: [[100, 199]] },
  ]);
  expect(claims[2]).toMatchObject({ owner: 'b2' });
});

it('isSameClaim compares owner and epoch', () => {
  const claim = { owner: 'a', epoch: 1 };
  expect([isSameClaim(claim, { ...claim }), isSameClaim(claim, { owner: 'a', epoch: 2 })]).toEqual([true, false]);
  expect([isSameClaim(claim, { owner: 'b', epoch: 1 }), isSameClaim(undefined, undefined)]).toEqual([false, false]);
});

const PARTITION = 7;

/** A node that answers by hand. */
class Node {
  questions = 0;
  private readonly open: ((view: NodeView) => void)[] = [];

  ask(): Promise<NodeView> {
    this.questions++;
    return new Promise((resolve) => this.open.push(resolve));
  }

  async answer(): Promise<void> {
    this.questions--;
    this.open.shift()?.({} as NodeView);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function stage() {
  const clock = new ManualClock();
  const nodes = [new Node(), new Node(), new Node()];
  let confirms = true;
  const views = new Views({
    clock,
    patience: 100,
    nodes: () => nodes as unknown as ClusterNode[],
    // Two of three are a majority.
    learn: (answers) => new Set(confirms && answers.length >= 2 ? [PARTITION] : []),
  });
  const replies: boolean[] = [];
  const confirm = (): void => views.confirm(PARTITION, clock.read(), (isConfirmed) => replies.push(isConfirmed));
  return { clock, nodes, views, replies, confirm, refuse: () => (confirms = false) };
}

// Protocol 12.7
describe('Views', () => {
  it('confirm a vote when a majority has answered', async () => {
    const { nodes, replies, confirm } = stage();
    confirm();
    await nodes[0]?.answer();
    expect(replies).toEqual([]);
    await nodes[1]?.answer();
    expect(replies).toEqual([true]);
  });

  it('confirm at once what was sent at most as long before as a view counts', async () => {
    const { clock, nodes, replies, confirm } = stage();
    confirm();
    await nodes[0]?.answer();
    await nodes[1]?.answer();
    await clock.advance(VIEW_AGE);
    confirm();
    expect(replies).toEqual([true, true]);
  });

  it('are sent anew for a vote that the last one is too old for', async () => {
    const { clock, nodes, replies, confirm } = stage();
    confirm();
    for (const node of nodes) await node.answer();
    await clock.advance(VIEW_AGE + 1);
    confirm();
    expect(replies).toEqual([true]);
    expect(nodes.map(({ questions }) => questions)).toEqual([1, 1, 1]);
    await nodes[2]?.answer();
    await nodes[0]?.answer();
    expect(replies).toEqual([true, true]);
  });

  it('are too old after a suspension, in which the monotonic clock stood still', async () => {
    const { clock, nodes, replies, confirm } = stage();
    confirm();
    for (const node of nodes) await node.answer();
    clock.suspend(VIEW_AGE + 1);
    confirm();
    expect(replies).toEqual([true]);
    for (const node of nodes) await node.answer();
    expect(replies).toEqual([true, true]);
  });

  it('confirm nothing that is sent after a suspension if they were asked for before it', async () => {
    const { clock, nodes, replies, confirm } = stage();
    confirm();
    clock.suspend(VIEW_AGE + 1);
    confirm();
    for (const node of nodes) await node.answer();
    expect(replies).toEqual([true]);
    for (const node of nodes) await node.answer();
    expect(replies).toEqual([true, true]);
  });

  it('confirm nothing after a standstill of both clocks if they were asked for before it', async () => {
    const { clock, nodes, replies, confirm, views } = stage();
    confirm();
    for (const node of nodes) await node.answer();
    confirm();
    expect(replies).toEqual([true, true]);
    await clock.advance(1);
    views.noteStandstill();
    confirm();
    expect(replies).toEqual([true, true]);
    for (const node of nodes) await node.answer();
    expect(replies).toEqual([true, true, true]);
  });

  it('do not confirm what the answers do not', async () => {
    const { nodes, replies, confirm, refuse } = stage();
    refuse();
    confirm();
    for (const node of nodes) await node.answer();
    expect(replies).toEqual([false]);
  });

  it('confirm nothing when too few nodes answer in time', async () => {
    const { clock, nodes, replies, confirm } = stage();
    confirm();
    await nodes[0]?.answer();
    await clock.advance(100);
    expect(replies).toEqual([false]);
    await nodes[1]?.answer();
    expect(replies).toEqual([false]);
  });

  it('ask a node that hangs a bounded number of times', async () => {
    const { clock, nodes, views } = stage();
    for (let round = 0; round < 10; round++) {
      void views.ask();
      await clock.advance(200);
    }
    expect(nodes.map(({ questions }) => questions)).toEqual([3, 3, 3]);
  });

  it('are refreshed in half the time for which they count', async () => {
    const { clock, nodes, views } = stage();
    views.refresh(clock.read());
    for (const node of nodes) await node.answer();
    await clock.advance(VIEW_AGE / 2 - 1);
    views.refresh(clock.read());
    expect(nodes[0]?.questions).toBe(0);
    await clock.advance(1);
    views.refresh(clock.read());
    expect(nodes[0]?.questions).toBe(1);
  });
});

const at = (monotonic: number) => ({ monotonic, wall: 0 });
const seal = (nonce: string, from = 0): Seal => ({
  ...{ run: 'r', replid: 'h', owner: 'a', epoch: '1', nonce, from, maxTtl: 1_000 },
  ...{ reason: 'it was sealed', generation: 'g' },
});

describe('The record of a partition', () => {
  const LONGEST = 3_000;
  let record: PartitionRecord;
  beforeEach(() => void (record = new PartitionRecord(() => LONGEST)));

  it('does not vote while its data is unknown', () => {
    expect(record.votesAt(at(1e12))).toBe(false);
    expect(record.quarantineAt(at(0))).toEqual({ reason: 'its owner is not known yet', remaining: LONGEST });
  });

  it('votes when the wait of its seal is over', () => {
    record.accept(seal('n', 50), 0, at(100));
    expect(record.quarantineAt(at(149))).toEqual({ reason: 'it was sealed', remaining: 1 });
    expect(record.quarantineAt(at(150))).toBeUndefined();
  });

  it('votes at once under a seal whose wait has passed', () => {
    record.accept(seal('n', -5), 0, at(100));
    expect(record.votesAt(at(100))).toBe(true);
  });

  it('waits no shorter when the clock of the server is set forward meanwhile', () => {
    record.accept(seal('n', 500), 0, at(100));
    record.accept(seal('n', -1_000), 0, at(110));
    expect([record.votesAt(at(599)), record.votesAt(at(600))]).toEqual([false, true]);
  });

  it('waits no longer than the longest quarantine when the clock of the server is set back', () => {
    record.accept(seal('n', 1e9), 0, at(100));
    expect(record.votesAt(at(3_100))).toBe(true);
  });

  it('lets no answer to an earlier request count after a doubt, or under another seal', () => {
    record.accept(seal('n'), 0, at(0));
    const { epoch } = record;
    record.accept(seal('n'), 0, at(1));
    expect(record.epoch).toBe(epoch);
    record.doubt('moved');
    const later = record.epoch;
    expect(later).toBeGreaterThan(epoch);
    expect(record.quarantineAt(at(1))).toEqual({ reason: 'moved', remaining: LONGEST });
    record.accept(seal('m'), 0, at(2));
    expect(record.epoch).toBeGreaterThan(later);
  });

  it('has its history compared at least once per interval, and anew under another seal', () => {
    record.accept(seal('n'), 0, at(0));
    expect(record.historyToCompare(at(0))).toBe('h');
    record.noteComparison('h', at(0));
    expect([record.historyToCompare(at(1_000)), record.historyToCompare(at(1_001))]).toEqual(['', 'h']);
    // A suspension: only the wall clock went on.
    expect(record.historyToCompare({ monotonic: 1, wall: 1_001 })).toBe('h');
    record.accept(seal('m'), 0, at(0));
    expect(record.historyToCompare(at(0))).toBe('h');
  });
});

describe('A seal', () => {
  const identity = parseInfo('run_id:r\r\nmaster_replid:h\r\n', 0);
  const claim = { owner: 'a', epoch: 1 };

  it('is read from the fields of its hash', () => {
    const values = ['r', 'h', 'a', '1', 'n', '7', '1000', 'it was sealed', 'g'];
    expect(sealFrom(values)).toEqual({ ...seal('n'), from: 7 });
    expect(sealFrom(values.map(() => null))).toBeUndefined();
  });

  // Protocol 12.5
  it('shows known data only with the same process, history and claim', () => {
    expect(reasonForSeal(seal('n'), identity, claim)).toBeUndefined();
    expect(reasonForSeal(undefined, identity, claim)).toMatch('no seal');
    expect(reasonForSeal({ ...seal('n'), owner: 'b' }, identity, claim)).toMatch('another node');
    expect(reasonForSeal({ ...seal('n'), run: 's' }, identity, claim)).toMatch('restarted');
    expect(reasonForSeal({ ...seal('n'), replid: 'i' }, identity, claim)).toMatch('history');
    expect(reasonForSeal({ ...seal('n'), epoch: '2' }, identity, claim)).toMatch('meanwhile');
  });

  it('needs no claim where the service reports none', () =>
    expect(reasonForSeal({ ...seal('n'), owner: '', epoch: '' }, identity, claim)).toBeUndefined());
});
