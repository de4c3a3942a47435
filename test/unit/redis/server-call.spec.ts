import { describe, expect, it } from '@jest/globals';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { UNEXPECTED } from '../../../lib/redis/replies.js';
import { ALL_FREE, FREE } from '../../../lib/redis/scripts/replies.js';
import { acquiring, inspecting, releasing } from '../../support/ask.js';
import { fakeMaster, replyError } from '../support/fake-client.js';

const NO_SCRIPT = replyError('NOSCRIPT No matching script. Please use EVAL.');

/** A master that votes, with nothing sent but the greeting. */
async function rig() {
  const faked = fakeMaster();
  await faked.connect();
  faked.client.sent.length = 0;
  const answers: MasterReply[] = [];
  const ask = async (...requests: readonly MasterRequest[]): Promise<void> => {
    for (const request of requests) faked.master.ask(request, (answer) => answers.push(answer));
    await faked.clock.settle();
  };
  return { ...faked, answers, ask };
}

describe('A server that has lost its scripts', () => {
  it('is sent the same requests with the text, over the same connection', async () => {
    const { client, clock, ask, answers, last } = await rig();
    await ask(acquiring(['a'], 'x'));
    const [, ...args] = last().args;
    last().reject(NO_SCRIPT);
    await clock.settle();
    expect([client.names, last().args.slice(1)]).toEqual([['digest', 'text'], args]);
    last().resolve([FREE, '5']);
    await clock.settle();
    expect(answers).toEqual([{ kind: 'granted' }]);
    // A text that is refused in this way, too, is not sent a third time.
    await ask(acquiring(['a'], 'x'));
    last().reject(NO_SCRIPT);
    await clock.settle();
    last().reject(NO_SCRIPT);
    await clock.settle();
    expect(client.names).toEqual(['digest', 'text', 'digest', 'text']);
    expect(answers[1]).toMatchObject({ kind: 'refused', code: 'NOSCRIPT' });
  });

  it('is not sent what has been withdrawn meanwhile, since its release has overtaken it', async () => {
    const { client, clock, ask, answers, last } = await rig();
    const [withdrawn, other] = [acquiring(['a'], 'x'), acquiring(['b'], 'y')];
    await ask(inspecting('c'), withdrawn, other);
    withdrawn.withdrawn = true;
    last().reject(NO_SCRIPT);
    await clock.settle();
    expect(client.names).toEqual(['digest', 'digest', 'text']);
    expect(JSON.stringify(last().args)).toContain('y');
    expect(JSON.stringify(last().args)).not.toContain('"x"');
    expect(answers).toMatchObject([{ kind: 'refused', code: 'NOSCRIPT' }]);
  });

  // Protocol 8.5
  it.each([
    ['over another connection, which may lead to another server', true],
    ['while the connection is lost', false],
  ])('is sent nothing again %s', async (_, isOpened) => {
    const { client, clock, ask, answers, last, connect } = await rig();
    await ask(acquiring(['a'], 'x'));
    const first = last();
    client.lose(first);
    if (isOpened) await connect();
    client.sent.length = 0;
    first.reject(NO_SCRIPT);
    await clock.settle();
    expect(client.names).toEqual([]);
    expect(answers).toMatchObject([{ kind: 'unreachable', sent: false }]);
  });
});

describe('The answers of one call', () => {
  it('belong to its requests, in their order, and the moment of the marker follows', async () => {
    const { clock, ask, answers, last, master } = await rig();
    await ask(inspecting('c'), acquiring(['a'], 'x'), releasing(['b'], 'y'));
    last().resolve(['not the holder', 'free, awaited', '1700000000005']);
    await clock.settle();
    expect(answers).toEqual([
      { kind: 'held', remaining: undefined },
      { kind: 'granted', hasWaiters: true },
    ]);
    expect(master.gate!.marker).toMatch(/-1700000000005$/);
  });

  it.each([
    ['one text with the moment of the marker', `${ALL_FREE}1700000000005`, /-1700000000005$/],
    ['one word, if none has passed the gate', ALL_FREE, /-\d+$/],
  ])('may be %s, if all are granted', async (_, answer, marker) => {
    const { clock, ask, answers, last, master } = await rig();
    await ask(inspecting('c'), acquiring(['a'], 'x'), releasing(['b'], 'y'));
    last().resolve(answer);
    await clock.settle();
    expect(answers).toEqual([{ kind: 'granted' }, { kind: 'granted' }]);
    expect(master.gate!.marker).toMatch(marker);
  });

  it('may be a quarantine for some, while a release is carried out', async () => {
    const { clock, ask, answers, last, master } = await rig();
    await ask(inspecting('c'), acquiring(['a'], 'x'), releasing(['b'], 'y'));
    last().resolve(['quarantined 3000', FREE]);
    await clock.settle();
    expect(answers).toEqual([
      { kind: 'quarantined', reason: 'waits 3.0 s because its data was lost', remaining: 3_000 },
      { kind: 'granted' },
    ]);
    expect([master.isQuarantined, master.gate!.marker]).toEqual([true, undefined]);
  });

  it('may be an error for one of them', async () => {
    const { clock, ask, answers, last } = await rig();
    await ask(inspecting('c'), acquiring(['a'], 'x'), releasing(['b'], 'y'));
    last().resolve([replyError('WRONGTYPE Operation against a key'), FREE, '5']);
    await clock.settle();
    expect(answers).toMatchObject([{ kind: 'refused', code: 'WRONGTYPE' }, { kind: 'granted' }]);
  });

  it('leave open what happened if the connection is lost before they come', async () => {
    const { client, clock, ask, answers } = await rig();
    await ask(acquiring(['a'], 'x'));
    client.lose();
    await clock.settle();
    expect(answers).toMatchObject([{ kind: 'unreachable', sent: true }]);
  });

  it.each([
    ['nothing', null],
    ['a number', 1],
    ['a text', 'OK'],
    ['a number as text', '1700000000005'],
    ['too few answers', []],
    ['too many answers', [FREE, '5', '5']],
    ['an answer of another kind', [{}, '5']],
  ])('are a refusal if something in between answers with %s', async (_, reply) => {
    const { clock, ask, answers, last, master } = await rig();
    await ask(acquiring(['a'], 'x'));
    last().resolve(reply);
    await clock.settle();
    expect(answers).toMatchObject([{ kind: 'refused', reason: expect.stringMatching(/^unexpected reply/) }]);
    expect(master.isQuarantined).toBe(false);
  });
});

describe('The answer to SET, as which a lock is acquired without the restart guard,', () => {
  it.each([
    ['grants it', 'OK', { kind: 'granted' }],
    ...['QUEUED', 0, '', []].map((odd) => ['does not if something in between gives it', odd, UNEXPECTED] as const),
  ])('%s: %j', async (_, answer, expected) => {
    const { clock, connect, last, master } = fakeMaster({ restartGuard: false });
    await connect();
    const answers: MasterReply[] = [];
    master.ask(acquiring(['a'], 'x'), (each) => answers.push(each));
    await clock.settle();
    expect(last().name).toBe('set');
    last().resolve(answer);
    await clock.settle();
    expect(answers).toEqual([expected]);
  });
});
