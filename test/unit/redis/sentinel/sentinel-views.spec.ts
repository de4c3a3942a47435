import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';
import type { RedisClient } from '../../../../lib/redis/redis-client.interface.js';
import { endpointOf, type NodeAddress } from '../../../../lib/redis/urls.js';
import { PrimaryWatch } from '../../../../lib/redis/sentinel/primary-watch.js';
import {
  type Asked,
  keyOf,
  Sentinel,
  type SentinelAnswer,
  SentinelViews,
  tally,
} from '../../../../lib/redis/sentinel/sentinel-views.js';

const PRIMARY = { host: '10.0.0.1', port: 6379 };

/** A group of sentinels, some of which hang. */
class Group {
  readonly clock = new ManualClock();
  readonly asked: string[] = [];
  readonly dropped: string[] = [];

  constructor(
    readonly hosts: string[],
    private readonly hanging: readonly string[] = [],
  ) {}

  views(listed: readonly string[], { isStrict = true, asksPeers = true } = {}): SentinelViews {
    const open = (address: NodeAddress): Pick<Sentinel, 'ask' | 'drop'> => ({
      ask: () => this.answerOf(address.host),
      drop: () => void this.dropped.push(endpointOf(address)),
    });
    const addresses = listed.map((host) => ({ host, port: 26_379 }));
    return new SentinelViews({ clock: this.clock, listed: addresses, asksPeers, name: 'locks', isStrict, open });
  }

  private answerOf(host: string): Promise<SentinelAnswer> {
    this.asked.push(host);
    if (this.hanging.includes(host)) return new Promise(() => undefined);
    if (!this.hosts.includes(host)) return Promise.reject(new Error('connect ECONNREFUSED'));
    const peers = this.hosts.filter((other) => other !== host);
    return Promise.resolve({
      id: host,
      peers: peers.map((id) => ({ id, address: { host: id, port: 26_379 } })),
      named: { address: PRIMARY, epoch: 0 },
    });
  }
}

describe('The views of a group of sentinels', () => {
  it('are decided without those that hang as soon as a majority agrees', async () => {
    const group = new Group(['a', 'b', 'c'], ['a']);
    const { tally } = await group.views(['a', 'b', 'c']).ask();
    expect(tally).toEqual({ primary: { address: PRIMARY, epoch: 0 }, isMajority: true });
    expect(group.clock.read().monotonic).toBe(0);
  });

  it('ask those that only the listed ones know', async () => {
    const group = new Group(['a', 'b', 'c']);
    const { tally } = await group.views(['a']).ask();
    expect(tally.primary).toBeDefined();
    expect(group.asked).toEqual(expect.arrayContaining(['a', 'b']));
  });

  it('do not ask them where only the listed ones may be asked, but count them', async () => {
    const group = new Group(['a', 'b', 'c']);
    const { tally } = await group.views(['a'], { asksPeers: false }).ask();
    expect(tally).toMatchObject({ primary: undefined, reason: expect.stringContaining('(2 of 3)') });
    expect(group.asked).toEqual(['a']);
  });

  // Protocol 13.3
  it('end after a second without a majority, and say which sentinel did not answer', async () => {
    const group = new Group(['a', 'b', 'c'], ['a', 'b']);
    const view = group.views(['a', 'b', 'c']).ask();
    await group.clock.advance(1_000);
    const { tally } = await view;
    expect(tally).toMatchObject({ reason: expect.stringContaining('a:26379: no answer within 1000 ms') });
    expect(group.dropped).toEqual(['a:26379', 'b:26379']);
  });

  it('take the word of one sentinel where no majority is needed', async () => {
    const group = new Group(['a']);
    const { tally } = await group.views(['x', 'a', 'y'], { isStrict: false }).ask();
    expect(tally).toEqual({ primary: { address: PRIMARY, epoch: 0 }, isMajority: false });
  });

  it('are one at a time: what was asked meanwhile shares the answer', async () => {
    const group = new Group(['a']);
    const views = group.views(['a']);
    await Promise.all([views.ask(), views.ask()]);
    expect(group.asked).toEqual(['a']);
  });

  it('are sent anew for a question that came after the one under way', async () => {
    const group = new Group(['a', 'b', 'c'], ['b', 'c']);
    const views = group.views(['a', 'b', 'c']);
    const first = views.ask();
    await group.clock.advance(500);
    const second = views.askFor(group.clock.read(), 0);
    await group.clock.advance(500);
    await first;
    await group.clock.advance(1_000);
    expect((await second).sent.monotonic).toBe(1_000);
  });
});

function stage() {
  const group = new Group(['a', 'b', 'c']);
  const key = keyOf({ address: PRIMARY, epoch: 0 });
  const doubts: (string | undefined)[] = [];
  const watch = new PrimaryWatch({
    clock: group.clock,
    views: group.views(['a', 'b', 'c']),
    isGuarded: true,
    connectedTo: () => key,
    isSilent: () => false,
    reopen: () => undefined,
    onDoubt: (doubt) => doubts.push(doubt?.reason),
  });
  return { group, watch, key, doubts };
}

// Protocol 13.1
describe('A vote of a group of sentinels', () => {
  it('counts under a view that was sent at most a second before', async () => {
    const { group, watch, key } = stage();
    expect(await watch.confirm(key, group.clock.read())).toBe(true);
    await group.clock.advance(1_000);
    expect(watch.isConfirmed(key, group.clock.read())).toBe(true);
    await group.clock.advance(1);
    expect(watch.isConfirmed(key, group.clock.read())).toBe(false);
  });

  it('needs another view after a suspension, in which the monotonic clock stood still', async () => {
    const { group, watch, key } = stage();
    await watch.confirm(key, group.clock.read());
    group.clock.suspend(1_001);
    const resumed = group.clock.read();
    expect(watch.isConfirmed(key, resumed)).toBe(false);
    expect(await watch.confirm(key, resumed)).toBe(true);
    expect(group.asked).toHaveLength(6);
  });

  it('needs another view after a standstill of both clocks', async () => {
    const { group, watch, key } = stage();
    await watch.confirm(key, group.clock.read());
    await group.clock.advance(1);
    watch.noteStandstill();
    expect(watch.isConfirmed(key, group.clock.read())).toBe(false);
    expect(await watch.confirm(key, group.clock.read())).toBe(true);
    expect(group.asked).toHaveLength(6);
  });

  it('shares no view that was under way at a standstill', async () => {
    const { group, watch, key } = stage();
    const before = watch.confirm(key, group.clock.read());
    await group.clock.advance(1);
    watch.noteStandstill();
    expect(await watch.confirm(key, group.clock.read())).toBe(true);
    await before;
    expect(group.asked).toHaveLength(6);
  });
});

it('A doubt of a group of sentinels is reported once when it begins, and when it ends', async () => {
  const { group, watch, key, doubts } = stage();
  const confirm = () => watch.confirm(key, group.clock.read());
  const known = group.hosts.splice(0);
  for (let i = 0; i < 2; i++) await confirm();
  group.hosts.push(...known);
  for (let i = 0; i < 2; i++) await confirm();
  expect(doubts).toEqual([expect.stringContaining('a majority of its sentinels'), undefined]);
});

it('A sentinel does not count those that it has not met yet, which have no id', async () => {
  const fields = (runid: string) => ['name', 'x', 'ip', '10.0.0.9', 'port', '26379', 'runid', runid];
  const answers: Record<string, unknown> = {
    'get-master-addr-by-name': ['10.0.0.1', '6379'],
    master: ['config-epoch', '7'],
    sentinels: [fields('b'), fields('').slice(0, -2)],
    myid: 'a',
  };
  const client = { on: () => undefined, call: (_: string, [name = '']: string[]) => Promise.resolve(answers[name]) };
  const open = () => client as unknown as RedisClient;
  const sentinel = new Sentinel({ name: 'locks', open, translate: (address) => address, secrets: [] });
  expect(await sentinel.ask()).toEqual({
    ...{ id: 'a', named: { address: PRIMARY, epoch: 7 } },
    peers: [{ id: 'b', address: { host: '10.0.0.9', port: 26_379 } }],
  });
});

const P = { host: '10.0.0.1', port: 6379 };
const Q = { host: '10.0.0.2', port: 6379 };

function answer(id: string | undefined, peers: string, address = P, epoch = 0): SentinelAnswer {
  const others = Array.from(peers).map((peer) => ({ id: peer, address: { host: peer, port: 26_379 } }));
  return { id, peers: others, named: { address, epoch } };
}

function asked(endpoint: string, given?: SentinelAnswer, isListed = true): Asked {
  return { endpoint, isListed, id: given?.id, answer: given, problem: given ? undefined : 'no answer' };
}

describe('The count of what sentinels say', () => {
  it('takes the primary that a majority of all of them names', () => {
    const result = tally([asked('a:1', answer('a', 'bc')), asked('b:1', answer('b', 'ac')), asked('c:1')], true);
    expect(result).toEqual({ primary: { address: P, epoch: 0 }, isMajority: true });
  });

  it('counts sentinels that are not listed among all of them', () => {
    const result = tally([asked('a:1', answer('a', 'bcde')), asked('b:1', answer('b', 'acde'))], true);
    expect(result).toMatchObject({ primary: undefined, reason: expect.stringContaining('(3 of 5)') });
  });

  it('counts listed sentinels that do not answer and that no other one knows', () => {
    const result = tally([asked('a:1', answer('a', '')), asked('b:1'), asked('c:1')], true);
    expect(result).toMatchObject({ primary: undefined, reason: expect.stringContaining('(2 of 3)') });
  });

  it('counts one sentinel under two addresses once', () => {
    const both = [asked('localhost:1', answer('a', 'bc')), asked('127.0.0.1:1', answer('a', 'bc'))];
    expect(tally(both, true)).toMatchObject({ primary: undefined });
    expect(tally([asked('x:1', answer('a', '')), asked('y:1', answer('a', ''))], true)).toMatchObject({
      isMajority: true,
    });
  });

  it('does not add up those that name one address in different epochs', () => {
    const three = [
      asked('a:1', answer('a', 'bc', P, 0)),
      asked('b:1', answer('b', 'ac', Q, 1)),
      asked('c:1', answer('c', 'ab', P, 2)),
    ];
    expect(tally(three, true)).toMatchObject({ primary: undefined });
  });

  it('takes the word of one sentinel as a majority if there is no other', () =>
    expect(tally([asked('a:1', answer('a', ''))], true)).toMatchObject({ isMajority: true }));

  it('does not count a sentinel that does not report its id, unless most answers are enough', () => {
    const one = [asked('a:1', answer(undefined, ''))];
    expect(tally(one, true)).toMatchObject({ primary: undefined });
    expect(tally(one, false)).toMatchObject({ primary: { address: P } });
  });

  it('names each sentinel that did not answer, and why', () => {
    const { reason } = tally([asked('a:1', answer('a', 'b')), asked('b:1')], true) as { reason: string };
    expect(reason).toBe(
      'a majority of its sentinels (2 of 2) must name its address: 1 of 2 name 10.0.0.1:6379; b:1: no answer',
    );
  });
});
