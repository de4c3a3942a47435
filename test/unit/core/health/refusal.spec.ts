import { describe, expect, it } from '@jest/globals';
import { CircuitBreakerMaster } from '../../../../lib/core/health/circuit-breaker-master.js';
import { statusOf } from '../../../../lib/core/health/status.js';
import type { MasterReply, MasterRequest } from '../../../../lib/core/master.interface.js';
import { granted, held, says, ScriptedMaster } from '../../support/scripted-master.js';
import { TestClock } from '../../support/test-clock.js';

const OWNER = { keys: ['a'], token: 't', ttl: 1_000 };
const REQUESTS: Readonly<Record<'acquire' | 'extend' | 'probe' | 'release' | 'inspect', MasterRequest>> = {
  acquire: { ...OWNER, op: 'acquire', withdrawn: false },
  extend: { ...OWNER, op: 'extend', withdrawn: false },
  probe: { op: 'probe', keys: ['p'] },
  release: { ...OWNER, op: 'release', queues: ['q'], keepFor: 0 },
  inspect: { op: 'inspect', keys: ['a'] },
};

const refusal = (code: string, reason = 'it says so'): MasterReply => ({ kind: 'refused', code, reason });

function setUp() {
  const clock = new TestClock();
  const inner = new ScriptedMaster(clock, 'm1');
  const events: string[] = [];
  const observer = {
    masterRefused: (name: string, reason: string) => events.push(`${name} refused: ${reason}`),
    masterVotesAgain: (name: string) => events.push(`${name} votes again`),
  };
  const master = new CircuitBreakerMaster(inner, clock, 50, observer, () => undefined);
  const ask = (op: keyof typeof REQUESTS, answer: MasterReply): void => {
    inner.behaviour = says(answer);
    master.ask(REQUESTS[op], () => undefined);
  };
  const status = () => statusOf('web:1', [master]);
  return { inner, master, events, ask, status };
}

describe('A master that refuses what locks need', () => {
  it.each(['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOAUTH', 'BUSY'])(
    'is refused in the status, which is reported once: %s',
    (code) => {
      const { events, ask, status } = setUp();
      for (const op of ['acquire', 'extend', 'probe'] as const) ask(op, refusal(code));
      expect(events).toEqual([`m1 refused: ${code} it says so`]);
      expect(status()).toMatchObject({ canVote: false, masters: [{ state: 'refused', reason: `${code} it says so` }] });
    },
  );

  it.each([
    "this user has no permissions to run the 'set' command",
    "this user has no permissions to run the 'set' command or its subcommand",
    "The user executing the script can't run this command or subcommand",
  ])('is refused if a permission for a command is missing: %s', (reason) => {
    const { events, ask } = setUp();
    ask('acquire', refusal('NOPERM', reason));
    expect(events).toEqual([`m1 refused: NOPERM ${reason}`]);
  });

  it('is still asked, and its votes are waited for', () => {
    const { inner, master, ask } = setUp();
    ask('acquire', refusal('OOM'));
    ask('acquire', refusal('OOM'));
    expect(inner.asked).toHaveLength(2);
    expect(master.isUsable).toBe(true);
  });

  it('votes again, reported once, when it writes for a lock', () => {
    const { events, ask, status } = setUp();
    ask('acquire', refusal('READONLY'));
    events.length = 0;
    ask('acquire', granted);
    ask('acquire', granted);
    expect(events).toEqual(['m1 votes again']);
    expect(status()).toMatchObject({ canVote: true, masters: [{ state: 'voting' }] });
    ask('probe', refusal('READONLY'));
    expect(events.slice(1)).toEqual(['m1 refused: READONLY it says so']);
  });

  it('stays refused when it grants what needs no memory, until it grants a probe', () => {
    const { events, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    events.length = 0;
    for (const op of ['acquire', 'extend', 'release', 'inspect'] as const) ask(op, granted);
    ask('acquire', held);
    expect(status().canVote).toBe(false);
    ask('probe', granted);
    expect(events).toEqual(['m1 votes again']);
  });

  it('has the reason of its last refusal', () => {
    const { events, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    ask('acquire', refusal('READONLY'));
    expect(status().masters[0]!.reason).toBe('READONLY it says so');
    expect(events).toHaveLength(1);
  });

  it('has a state that says more if there is one, except for a quarantine, which would end', () => {
    const { inner, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    inner.known = { quarantine: { reason: 'it restarted', remaining: 900 } };
    expect(status().masters[0]).toEqual({ master: 'm1', state: 'refused', reason: 'OOM it says so' });
    inner.trouble = { kind: 'unreachable', reason: 'gone', sent: false };
    expect(status().masters[0]).toMatchObject({ state: 'down', reason: 'gone' });
  });
});

describe('A refusal that says nothing about other locks', () => {
  it.each<[string, keyof typeof REQUESTS, MasterReply]>([
    ['a key of another type', 'acquire', refusal('WRONGTYPE')],
    ['data that was lost', 'probe', refusal('UNMARKED')],
    [
      'no permission for a key, in Redis 6',
      'acquire',
      refusal('NOPERM', 'this user has no permissions to access one of the keys used as arguments'),
    ],
    [
      'no permission for a key, in Redis 7',
      'acquire',
      refusal('NOPERM', "The user executing the script can't access at least one of the keys mentioned in the command"),
    ],
    ['of a request that does not write for a lock', 'release', refusal('OOM')],
    ['of a request that only reads', 'inspect', refusal('NOAUTH')],
  ])('leaves the master voting: %s', (_, op, answer) => {
    const { events, ask, status } = setUp();
    ask(op, answer);
    expect(events).toEqual([]);
    expect(status().canVote).toBe(true);
  });
});
