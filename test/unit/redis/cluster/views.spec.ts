import { describe, expect, it } from '@jest/globals';
import type { ClusterNode } from '../../../../lib/redis/cluster/cluster-node.js';
import type { NodeView } from '../../../../lib/redis/cluster/node-view.js';
import { VIEW_AGE, Views } from '../../../../lib/redis/cluster/views.js';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';

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
