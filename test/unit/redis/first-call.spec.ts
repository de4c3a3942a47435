import { describe, expect, it } from '@jest/globals';
import { FREE } from '../../../lib/redis/scripts/replies.js';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { acquiring, drawing, extending, inspecting, picking, releasing } from '../../support/ask.js';
import { fakeMaster, replyError, reportOf } from '../support/fake-client.js';

function rig(options?: Parameters<typeof fakeMaster>[0]) {
  const faked = fakeMaster(options);
  const answers: MasterReply[] = [];
  const ask = async (...requests: readonly MasterRequest[]): Promise<void> => {
    for (const request of requests) faked.master.ask(request, (answer) => answers.push(answer));
    await faked.clock.settle();
  };
  return { ...faked, answers, ask, acquire: () => ask(acquiring(['a'], 'secret')) };
}

const NOT_SENT = { kind: 'unreachable', sent: false };

// Protocol 8.4
describe('The first call over a connection', () => {
  it('names the marker and maxTtl, and nothing is sent before it has passed', async () => {
    const { client, clock, answers, acquire, last } = rig({ ttl: '3s', maxTtl: '30s' });
    client.open();
    await acquire();
    expect([client.names, answers]).toEqual([['report'], [expect.objectContaining(NOT_SENT)]]);
    expect(last().args.slice(1)).toEqual([0, 'lock:\0run', 30_000]);
    last().resolve(reportOf());
    await clock.settle();
    await acquire();
    expect(client.names).toEqual(['report', 'script', 'digest']);
  });

  it.each(['LOADING Redis is loading the dataset in memory', 'NOSCRIPT No matching script'])(
    'is no answer if it is an error, and is asked again over the next connection: %s',
    async (message) => {
      const { client, clock, acquire, last, connect } = rig();
      client.open();
      await clock.settle();
      last().reject(replyError(message));
      await clock.settle();
      await acquire();
      expect(client.drops).toBeGreaterThan(0);
      await connect();
      await acquire();
      expect(client.names).toEqual(['report', 'report', 'script', 'digest']);
    },
  );

  it('is no answer if the connection is lost before it comes', async () => {
    const { client, clock, acquire, connect, events } = rig();
    client.open();
    await clock.settle();
    client.lose();
    await clock.settle();
    await acquire();
    expect(client.names).toEqual(['report']);
    await connect();
    expect([client.names, events]).toEqual([['report', 'report', 'script'], []]);
  });

  it('may take ten seconds: then the connection is closed', async () => {
    const { client, clock, acquire } = rig();
    client.open();
    await clock.advance(9_999);
    expect(client.drops).toBe(0);
    await clock.advance(1);
    expect(client.drops).toBe(1);
    await acquire();
    expect(client.names).toEqual(['report']);
  });

  it('shows that nothing may be sent to a replica', async () => {
    const report = { info: { role: 'slave' } };
    const { client, connect, acquire, answers, master, events } = rig();
    await connect(report);
    await acquire();
    expect(client.names).toEqual(['report']);
    expect(master.identity().fault).toMatch(/^it is a replica/);
    expect(answers).toMatchObject([{ ...NOT_SENT, isPermanent: true }]);
    expect(events).toEqual([expect.stringMatching(/^refused: /)]);
    // Asked again later, and said once.
    await connect(report);
    expect(events).toHaveLength(1);
  });

  it('reads no marker without the restart guard, under which a server need not say its run', async () => {
    const { client, clock, connect, acquire } = rig({ restartGuard: false });
    client.open();
    expect(client.sent[0]!.args.slice(1)).toEqual([0, '']);
    client.lose();
    await clock.settle();
    await connect({ run: '' });
    await acquire();
    expect(client.names.at(-1)).toBe('set');
  });
});

// Protocol 8.5
describe('A request of a round that began before the connection', () => {
  const early = { since: 50 };

  it('is not sent: over the connection before, the address may have led to another server', async () => {
    const { client, clock, connect, ask, answers } = rig();
    await clock.advance(100);
    await connect();
    const gated = [
      acquiring(['a'], 'x', early),
      picking(['a'], 'x', early),
      { ...extending(['a'], 'x'), ...early },
      drawing(['a'], 'x', early),
    ];
    await ask(...gated);
    expect(answers).toEqual(gated.map(() => ({ ...NOT_SENT, reason: 'its connection is younger than the request' })));
    expect(client.names).toEqual(['report', 'script']);
  });

  it('keeps no others from being sent, and a release belongs to no round', async () => {
    const { clock, connect, ask, last, answers } = rig();
    await clock.advance(100);
    await connect();
    await ask(
      releasing(['a'], 'x'),
      acquiring(['a'], 'x', early),
      acquiring(['b'], 'x', { since: 100 }),
      inspecting('a'),
    );
    expect(answers).toMatchObject([NOT_SENT]);
    expect(JSON.stringify(last().args)).toContain('inspect');
    expect(JSON.stringify(last().args)).not.toContain('take","a');
    expect(JSON.stringify(last().args)).toContain('take');
  });
});

describe('A server that waits', () => {
  it('is reported once, is asked again when its wait ends, and is reported to vote', async () => {
    const { client, clock, connect, last, events, master } = rig();
    let ready = 0;
    master.onReady(() => ready++);
    await connect({ wait: 9_800, cause: 'new' });
    expect([events, ready]).toEqual([['waits 9.8 s because it is new'], 1]);
    await clock.advance(9_799);
    expect(client.names).toEqual(['report', 'script']);
    await clock.advance(1);
    // Its clock is slower than that of this process.
    last().resolve(reportOf({ wait: 30 }));
    await clock.advance(30);
    last().resolve(reportOf());
    await clock.settle();
    expect(client.names).toEqual(['report', 'script', 'report', 'report']);
    expect([events.slice(1), ready, master.isQuarantined]).toEqual([['votes again'], 2, false]);
    await clock.advance(60_000);
    expect(client.sent).toHaveLength(4);
  });

  it('is reported to vote by the first request that passes', async () => {
    const { clock, connect, acquire, last, events } = rig();
    await connect({ wait: 9_800, cause: 'new' });
    await acquire();
    last().resolve([FREE, '1700000000000']);
    await clock.settle();
    expect(events.slice(1)).toEqual(['votes again']);
    // The one that notices a silent connection.
    await clock.advance(1_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is reported to vote over a later connection, if the one before was lost until its wait had ended', async () => {
    const { client, clock, connect, events } = rig();
    await connect({ wait: 9_800, cause: 'new' });
    client.lose();
    await clock.advance(20_000);
    await connect();
    expect(events).toEqual(['waits 9.8 s because it is new', 'lost', 'votes again']);
  });
});
