import { describe, expect, it } from '@jest/globals';
import { ClusterMap } from '../../../../lib/redis/cluster/cluster-map.js';
import { type NodeView, parseNodes } from '../../../../lib/redis/cluster/node-view.js';

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
const all = ['a', 'b', 'c'].map((self) => view(self, ALL));

describe('ClusterMap', () => {
  it('takes the claims that a majority of the primaries knows', () => {
    const map = new ClusterMap(true);
    const { confirmed, changed } = map.learn(all);
    expect(confirmed.size).toBe(256);
    expect(changed).toHaveLength(256);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
    expect(map.partitionsOf('c')).toHaveLength(85);
    expect([...map.primaries.keys()]).toEqual(['a', 'b', 'c']);
    expect(map.learn(all).changed).toEqual([]);
  });

  it('learns nothing from less than a majority, or from replicas', () => {
    const map = new ClusterMap(true);
    expect(map.learn([view('a', ALL)]).confirmed.size).toBe(0);
    expect(map.learn([view('a', ALL), view('replica', ALL), view('other', ALL)]).confirmed.size).toBe(0);
    expect(map.claimOf(0)).toBeUndefined();
  });

  it('names the primaries that too few answers name: most of those that it knew may be replicas by now', () => {
    const map = new ClusterMap(true);
    map.learn(all);
    const promoted = ['x:4', 'b:2', 'z:5'];
    map.learn([view('a', promoted), view('b', promoted), view('c', promoted)]);
    expect([...map.primaries.keys()]).toEqual(['a', 'b', 'c']);
    expect(map.candidates.map(({ owner }) => owner)).toEqual(['b', 'x', 'z']);
    map.learn(['x', 'b', 'z'].map((self) => view(self, promoted)));
    expect([...map.primaries.keys()]).toEqual(['b', 'x', 'z']);
    expect(map.candidates).toEqual([]);
  });

  it('counts one node once, under however many addresses it is reached', () => {
    const map = new ClusterMap(true);
    expect(map.learn([view('a', ALL), view('a', ALL)]).confirmed.size).toBe(0);
  });

  it('does not confirm an owner that half of the primaries do not know any more', () => {
    const map = new ClusterMap(true);
    map.learn(all);
    const promoted = ['x:4', 'b:2', 'c:3'];
    const { confirmed, changed } = map.learn([view('a', ALL), view('b', promoted), view('c', promoted)]);
    expect(changed).toEqual(map.partitionsOf('x'));
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
    expect(confirmed.has(0)).toBe(true);
    expect(map.learn([view('a', ALL), view('c', promoted)]).confirmed.has(0)).toBe(false);
  });

  it('prefers the newer of two claims that each have a majority, since both sit on one seat', () => {
    const map = new ClusterMap(true);
    const promoted = ['x:4', 'b:2', 'c:3'];
    map.learn([view('a', ALL), view('b', ALL), view('x', promoted), view('c', promoted)]);
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
  });

  // Protocol 12.7
  it('allows a seal only if enough primaries other than the owner know its claim', () => {
    const map = new ClusterMap(true);
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
    const map = new ClusterMap(true);
    map.learn([view('a', ['a:1'], ['0-16383'])]);
    expect(map.maySeal(0)).toBe(true);
  });

  it('counts the same owner under a new epoch as another claim', () => {
    const map = new ClusterMap(true);
    map.learn(all);
    const raised = ['a:5', 'b:2', 'c:3'];
    expect(map.learn(['a', 'b', 'c'].map((self) => view(self, raised))).changed).toEqual(map.partitionsOf('a'));
  });

  it('keeps the claim of a partition that no node claims any more, without confirming it', () => {
    const map = new ClusterMap(true);
    map.learn(all);
    const gone = ['b:2', 'c:3'];
    const slots = THIRDS.slice(1);
    const { confirmed } = map.learn([view('b', gone, slots), view('c', gone, slots)]);
    expect(confirmed.has(0)).toBe(false);
    expect(confirmed.has(255)).toBe(true);
    expect(map.claimOf(0)).toEqual({ owner: 'a', epoch: 1 });
  });

  it('takes the newest claim of any primary where no majority is asked for', () => {
    const map = new ClusterMap(false);
    expect(map.learn([view('a', ALL)]).confirmed.size).toBe(256);
    map.learn([view('a', ALL), view('x', ['x:4', 'b:2', 'c:3'])]);
    expect(map.claimOf(0)).toEqual({ owner: 'x', epoch: 4 });
  });

  it.each([true, false])(
    'counts no node of two clusters, in whatever order they answer (majority: %s)',
    (asksMajority) => {
      const map = new ClusterMap(asksMajority);
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
    const map = new ClusterMap(true);
    const [first, middle, last] = [view('a', ['a:1', 'b:2']), view('b', ALL), view('c', ['', 'b:2', 'c:3'])];
    map.learn([first, last, middle, parseNodes('new 10.0.0.1:7009@17009 myself,master - 0 0 0 connected')]);
    expect(map.fault).toBeUndefined();
  });
});
