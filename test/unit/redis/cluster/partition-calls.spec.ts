import { beforeEach, describe, expect, it } from '@jest/globals';
import { Keyspace } from '../../../../lib/core/keyspace.js';
import type { MasterReply } from '../../../../lib/core/master.interface.js';
import { resolveSettings } from '../../../../lib/core/settings/settings.js';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';
import type { ClusterMap } from '../../../../lib/redis/cluster/cluster-map.js';
import { ClusterNames } from '../../../../lib/redis/cluster/cluster-names.js';
import type { ClusterNode } from '../../../../lib/redis/cluster/cluster-node.js';
import { PartitionCalls } from '../../../../lib/redis/cluster/partition-calls.js';
import { PartitionGuard, SEAL_FIELDS } from '../../../../lib/redis/cluster/partition-guard.js';
import type { Topology } from '../../../../lib/redis/cluster/topology.js';
import { FREE, UNMARKED } from '../../../../lib/redis/scripts/constants.js';
import { boundScript } from '../../../../lib/redis/scripts/bound-script.js';
import { acquiring } from '../../../support/ask.js';

const names = new ClusterNames('lock:');
const key = new Keyspace('lock:').keyOf('one');
const PARTITION = names.partitionOf(key);
const CLAIM = { owner: 'a1', epoch: 1 };
const SEAL = {
  ...{ run: 'r', replid: 'h', owner: 'a1', epoch: '1', nonce: 'n', from: '0', max: '30000', why: 'it was sealed' },
  generation: 'g@0',
};

/** The only primary of a cluster. It answers each script with the next of `replies`. */
class Primary {
  readonly id = 'a1';
  readonly isConnected = true;
  readonly isListening = false;
  readonly isSilent = false;
  readonly identity = { run: 'r', replid: 'h' };
  readonly script = boundScript('r');
  readonly replies: unknown[] = [];
  /** The history that each script was to compare. */
  readonly compared: unknown[] = [];
  sealsRead = 0;
  recognitions = 0;

  problem(): undefined {
    return undefined;
  }

  failure(error: unknown, tokens: readonly string[]): MasterReply {
    const reason = tokens.reduce((text, token) => text.replace(token, '***'), (error as Error).message);
    return { kind: 'refused', code: 'ERR', reason };
  }

  recognize(): Promise<boolean> {
    this.recognitions++;
    return Promise.resolve(true);
  }

  request(_: string, [, count, ...rest]: (string | number)[], answered: (value: unknown) => void): void {
    this.compared.push(rest[Number(count) + 2]);
    answered([this.replies.shift()]);
  }

  call(command: string, args: (string | number)[]): Promise<unknown> {
    if (command === 'time') return Promise.resolve(['1', '0']);
    this.sealsRead++;
    const isHere = args[0] === names.sealOf(PARTITION);
    const seal = { ...SEAL, from: isHere ? '0' : '5000' };
    return Promise.resolve(SEAL_FIELDS.map((field) => seal[field]));
  }
}

describe('A partition', () => {
  let clock: ManualClock;
  let primary: Primary;
  let guard: PartitionGuard;
  let calls: PartitionCalls;
  let answers: MasterReply[];
  let refreshes: number;

  beforeEach(async () => {
    clock = new ManualClock();
    primary = new Primary();
    answers = [];
    refreshes = 0;
    const map = { partitionsOf: () => [PARTITION, PARTITION + 1], claimOf: () => CLAIM, maySeal: () => true };
    guard = new PartitionGuard({
      ...{ clock, names, map: map as unknown as ClusterMap, patience: 100, nodeTimeout: undefined },
      ...{ random: { token: () => 't', fraction: () => 0 }, settings: resolveSettings({ maxTtl: 30_000 }, 1) },
      nodes: () => [primary as unknown as ClusterNode],
    });
    const topology = {
      ownerOf: () => primary,
      refreshSoon: () => undefined,
      refresh: () => {
        refreshes++;
        return Promise.resolve();
      },
    } as unknown as Topology;
    const context = { clock, names, topology, guard, readsSeals: true, needsView: false, masterTimeout: 100 };
    calls = new PartitionCalls(context);
    await guard.check();
  });

  async function acquire(...replies: unknown[]): Promise<MasterReply[]> {
    primary.replies.push(...replies);
    calls.send(PARTITION, [{ request: acquiring([key], 'secret'), reply: (answer) => answers.push(answer) }]);
    await clock.settle();
    return answers;
  }

  // Protocol 8.1
  it('has its history compared with the first votes, and then once per interval', async () => {
    await acquire(FREE);
    await acquire(FREE);
    clock.stall(1_001);
    expect(await acquire(FREE)).toMatchObject([{ kind: 'granted' }, { kind: 'granted' }, { kind: 'granted' }]);
    expect(primary.compared).toEqual(['h', '', 'h']);
  });

  // Protocol 12.5
  it('without the known seal has no vote until its seal has been read again, and is asked no more meanwhile', async () => {
    expect(await acquire(UNMARKED)).toMatchObject([{ kind: 'quarantined', reason: 'its data was lost or replaced' }]);
    expect([primary.recognitions, refreshes, primary.compared.length]).toEqual([1, 1, 1]);
    await guard.check();
    expect((await acquire(FREE))[1]).toMatchObject({ kind: 'granted' });
  });

  it('whose script fails reports why, without the token', async () => {
    const error = Object.assign(new Error('ERR secret is no number'), { name: 'ReplyError' });
    expect(await acquire(error)).toEqual([{ kind: 'refused', code: 'ERR', reason: 'ERR *** is no number' }]);
  });

  it('has its seal read again only if it is not known', async () => {
    guard.invalidate(PARTITION);
    const before = primary.sealsRead;
    await guard.check();
    expect([before, primary.sealsRead]).toEqual([2, 3]);
  });

  it('waits for as long as its seal says, and the shortest wait is named first', () => {
    guard.invalidate(PARTITION);
    const waits = guard.quarantinesAt(clock.read(), [PARTITION, PARTITION + 1]);
    expect(waits.map(({ remaining }) => remaining)).toEqual([4_000, guard.longest]);
  });
});
