import { describe, expect, it } from '@jest/globals';
import { MachineClock } from '../engine/machine-clock.js';
import { Scheduler } from '../engine/scheduler.js';
import { runId, SimServer } from './sim-server.js';

const ZEROS = '0'.repeat(40);

function started(): { readonly server: SimServer; readonly scheduler: Scheduler } {
  const scheduler = new Scheduler();
  const clock = new MachineClock(scheduler, 1, 0);
  return { server: new SimServer(runId(0, 0), { clock, faults: new Set() }), scheduler };
}

function replicationOf(server: SimServer): Record<string, unknown> {
  const { role, master_replid, master_replid2 } = server.info();
  return { role, master_replid, master_replid2 };
}

describe('SimServer', () => {
  it('starts a history of its own', () => {
    const { server } = started();
    const { master_replid: replid, master_replid2: replid2, role } = replicationOf(server);
    expect({ role, replid2 }).toEqual({ role: 'master', replid2: ZEROS });
    expect(replid).toMatch(/^\w{40}$/);
    expect(replid).toBe(server.replid);
  });

  it('changes its history without naming the previous one when its first replica is attached', () => {
    const { server } = started();
    const before = server.replid;
    server.attachReplica();
    const after = server.replid;
    server.attachReplica();
    expect(after).not.toBe(before);
    expect(replicationOf(server)).toEqual({ role: 'master', master_replid: after, master_replid2: ZEROS });
  });

  it('continues the history of its primary when it is promoted', () => {
    const { server } = started();
    const before = server.replid;
    server.demote();
    expect(replicationOf(server)['role']).toBe('slave');
    server.promote();
    expect(replicationOf(server)).toEqual({ role: 'master', master_replid: server.replid, master_replid2: before });
    expect(server.replid).not.toBe(before);
  });

  it('keeps its run and gets the data and the history of another primary after a failback', () => {
    const { server } = started();
    server.data.set('old', 'x', 1_000);
    const remains = server.data.copy();
    server.data.set('new', 'x', 1_000);
    const other = 'b'.repeat(40);
    server.follow(other, remains);
    expect(replicationOf(server)).toEqual({ role: 'slave', master_replid: other, master_replid2: ZEROS });
    server.promote();
    expect(server.data.keys()).toEqual(['old']);
    expect(replicationOf(server)['master_replid2']).toBe(other);
    expect(server.info().run_id).toBe(runId(0, 0));
  });

  it('reports whether it keeps acknowledged data', () => {
    const clock = new MachineClock(new Scheduler(), 1, 0);
    const [durable, other] = [true, false].map((isDurable) => {
      return new SimServer(runId(0, 0), { clock, faults: new Set(), durable: isDurable }).info().aof_enabled;
    });
    expect([durable, other]).toEqual([1, 0]);
  });
});
