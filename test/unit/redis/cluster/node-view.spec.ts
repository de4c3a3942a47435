import { describe, expect, it } from '@jest/globals';
import { isSameClaim, parseNodes, viewFromSlots } from '../../../../lib/redis/cluster/node-view.js';

const NODES = [
  'a1 10.0.0.1:7000@17000 myself,master - 0 0 3 connected 0-8191 [8192->-b2] [93-<-b2]',
  'b2 10.0.0.2:7001@17001,redis-b.internal master - 0 1 5 connected 8192-16382 16383',
  'c3 10.0.0.3:7002@17002,,shard-id=77 slave a1 0 1 3 connected',
  'd4 :0@0 master,noaddr - 0 1 1 disconnected',
].join('\n');

describe('parseNodes', () => {
  const view = parseNodes(`${NODES}\n`);

  it('names the node that answers, and all nodes', () => {
    expect(view).toMatchObject({ self: 'a1', isReplica: false, ids: ['a1', 'b2', 'c3', 'd4'] });
    expect(
      parseNodes(NODES.replaceAll('myself,master', 'master').replace('slave a1', 'myself,slave a1')),
    ).toMatchObject({
      self: 'c3',
      isReplica: true,
    });
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

  it('knows no owner of a partition whose slot has none', () => {
    expect(parseNodes(NODES.replace('0-8191', '1-8191')).claims[0]).toBeUndefined();
  });

  it('reads an IPv6 address', () => {
    const [primary] = parseNodes('a1 ::1:7000@17000 myself,master - 0 0 3 connected 0-16383').primaries;
    expect(primary).toMatchObject({ host: '::1', port: 7000 });
  });

  it('leaves the host empty if the node does not announce one', () => {
    const [primary] = parseNodes('a1 :7000@17000 myself,master - 0 0 3 connected 0-16383').primaries;
    expect(primary).toMatchObject({ host: '', port: 7000 });
  });

  it('has the same signature only for the same owners, epochs and slots', () => {
    expect(parseNodes(NODES.replace(' 0 1 5 ', ' 77 88 5 ')).signature).toBe(view.signature);
    expect(parseNodes(NODES.replace(' 0 1 5 ', ' 0 1 6 ')).signature).not.toBe(view.signature);
    expect(parseNodes(NODES.replace('16383', '')).signature).not.toBe(view.signature);
  });
});

describe('viewFromSlots', () => {
  it('joins the ranges of a primary, and knows no epochs', () => {
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
});

describe('isSameClaim', () => {
  it('compares owner and epoch', () => {
    const claim = { owner: 'a', epoch: 1 };
    expect(isSameClaim(claim, { ...claim })).toBe(true);
    expect(isSameClaim(claim, { owner: 'a', epoch: 2 })).toBe(false);
    expect(isSameClaim(claim, { owner: 'b', epoch: 1 })).toBe(false);
    expect(isSameClaim(undefined, undefined)).toBe(false);
  });
});
