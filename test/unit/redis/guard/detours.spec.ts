import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { GuardStage, type GuardStageOptions, type Place, placeOf } from '../../support/guard-stage.js';
import { FakeServer, type Process } from '../../support/guarded-servers.js';
import type { TestClock } from '../../support/test-clock.js';

const KINDS = ['known', 'with its first replica', 'marked without the permission for INFO', 'empty'] as const;
type Kind = (typeof KINDS)[number];

describe('An address that leads to another server and back', () => {
  let stage: GuardStage;
  let clock: TestClock;
  let servers: GuardStage['servers'];
  let process: Process;

  afterEach(() => process.guard.close());

  async function use(options: GuardStageOptions = {}): Promise<void> {
    stage = new GuardStage(options);
    ({ clock, servers, process } = stage);
    await process.connectAll();
    await stage.receive(10);
  }

  /** Another server, with its own data and clock. */
  function stranger(kind: Kind, ahead = 0): Place {
    const server = Object.assign(new FakeServer(clock, 'spare'), { ahead });
    if (kind !== 'empty') server.mark();
    if (kind === 'with its first replica') Object.assign(server, { replid: 'spare:later', replicas: 1 });
    if (kind === 'marked without the permission for INFO') server.change({ run: '' });
    return placeOf(server);
  }

  describe.each([
    [3, 0],
    [1, 2],
  ])('%i servers and %i clusters', (count, clusters) => {
    const cases = KINDS.flatMap((kind) =>
      [-5_000, 5_000].flatMap((ahead) => [0, 1, 50].map((lasts) => [kind, ahead, lasts] as const)),
    );
    it.each(cases)(
      'compares no clock with that of a server that is %s and %i ms ahead, for %i ms',
      async (...detour) => {
        const [kind, ahead, lasts] = detour;
        await use({ count, clusters });
        const [a] = servers;
        const own = placeOf(a);
        stage.lead(a, stranger(kind, ahead));
        await clock.advance(lasts);
        stage.lead(a, own);
        await stage.receive(2);
        expect([a.marker?.reason, process.votes, process.lags]).toEqual(['', servers.map(() => true), []]);
      },
    );
  });

  it.each(KINDS)('keeps the accusation of a master whose clock was set: %s', async (kind) => {
    await use();
    const [a] = servers;
    a.ahead += 9_000;
    stage.sample(0);
    const identity = stage.identity(0);
    for (let turn = 0; turn < 200 && identity.step === undefined; turn++) await Promise.resolve();
    expect(identity.step).toBeDefined();
    // The connection breaks before the accusation is written.
    a.isDown = true;
    await clock.advance(500);
    a.isDown = false;
    const own = placeOf(a);
    stage.lead(a, stranger(kind));
    await clock.advance(1_000);
    stage.lead(a, own);
    await stage.receive(3);
    expect(a.marker?.reason).toMatch(/jumped/);
    expect(process.votes[0]).toBe(false);
  });

  it.each([
    ['with its first replica', 0],
    ['with its first replica', 3_000],
    ['marked without the permission for INFO', 0],
    ['marked without the permission for INFO', 3_000],
  ] as const)(
    'lets a declared master that restarts meanwhile vote at once if the other never voted: %s, for %i ms',
    async (kind, lasts) => {
      await use({ isDurable: true });
      const [a] = servers;
      const own = placeOf(a);
      const [link] = process.links;
      // The other server refuses to be marked.
      const refusing = jest.spyOn(link!, 'mark').mockResolvedValue(false);
      stage.lead(a, stranger(kind));
      await clock.advance(lasts);
      refusing.mockRestore();
      stage.lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
      await stage.receive(1);
      expect([a.marker?.reason, process.votes[0]]).toEqual(['', true]);
    },
  );

  it('does not let a declared master vote that restarts after unknown data, which only a judgement of clocks has read', async () => {
    await use({ isDurable: true });
    const [a] = servers;
    const own = placeOf(a);
    a.ahead += 9_000;
    const [sent, time] = [clock.read(), a.time];
    Object.assign(a, stranger('empty'));
    process.guard.sampled(stage.identity(0), sent, time);
    await clock.settle();
    stage.lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
    await stage.receive(1);
    expect(process.votes[0]).toBe(false);
  });

  it('does not let a declared master vote that restarts after unknown data, whose late report arrives after that', async () => {
    await use({ isDurable: true });
    const [a] = servers;
    a.quarantine(2_000);
    process.connect(a);
    await clock.advance(1_900);
    const own = placeOf(a);
    const [link, , slow] = process.links;
    const answer = slow!.hold();
    const { readings } = link!;
    for (let waited = 0; waited < 400 && link!.readings === readings; waited++) await clock.advance(1);
    for (let waited = 0; waited < 400 && a.marker!.from > a.time; waited++) await clock.advance(1);
    stage.lead(a, stranger('empty'));
    answer();
    for (let turn = 0; turn < 100 && !process.votes[0]; turn++) await Promise.resolve();
    stage.lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
    await stage.receive(4);
    expect(a.marker?.reason).not.toBe('');
  });

  describe('while a step is judged', () => {
    /** The address of b leads to another server that is known already, from the judgement on for a while. */
    async function judgeWithDetour(ahead: number, step: () => void): Promise<void> {
      await use();
      const [, b] = servers;
      const own = placeOf(b);
      const other = stranger('known', ahead);
      stage.lead(b, other);
      await stage.receive(3);
      stage.lead(b, own);
      await stage.receive(3);
      expect(process.lags).toEqual([]);
      // c hangs for a moment, and the judgement waits for it.
      process.links[2]!.held = new Promise(() => undefined);
      const before = servers.map((server) => server.ahead);
      step();
      const moved = b.ahead - before[1]!;
      stage.sample(0);
      await clock.settle();
      stage.lead(b, { ...other, ahead: ahead + moved });
      await clock.advance(300);
      process.links[2]!.held = undefined;
      stage.lead(b, { ...own, ahead: moved });
      await stage.receive(3);
    }

    it.each([0, -5_000, 5_000])('accuses no master with a right clock: other server %i ms ahead', async (ahead) => {
      // This process stands still.
      await judgeWithDetour(ahead, () => stage.standStill(5_000));
      expect(servers.map(({ marker }) => marker?.reason)).toEqual(['', '', '']);
      expect(process.votes).toEqual([true, true, true]);
      expect(stage.lagged).toBeGreaterThanOrEqual(5_000);
    });

    it.each([0, -9_000])('accuses a master whose clock was set: other server %i ms ahead', async (ahead) => {
      await judgeWithDetour(ahead, () => (servers[0].ahead += 9_000));
      expect(servers[0].marker?.reason).toMatch(/jumped/);
      expect(process.lags).toEqual([]);
    });
  });

  describe.each(['known', 'empty'] as const)(
    'while it leads to a server that is %s and a standstill is noticed',
    (kind) => {
      it('notices afterwards that the clock of the first one was set meanwhile', async () => {
        await use();
        const [a] = servers;
        const own = placeOf(a);
        stage.lead(a, stranger(kind));
        await stage.receive(1);
        stage.standStill(8_000);
        await stage.receive(1);
        expect(stage.lagged).toBeGreaterThanOrEqual(8_000);
        stage.lead(a, { ...own, ahead: 17_000 });
        await stage.receive(3);
        expect(a.marker?.reason).toMatch(/jumped/);
        expect(process.votes[0]).toBe(false);
      });

      it('notices a second one afterwards, also if only that server shows it', async () => {
        await use({ count: 1, clusters: 2 });
        const [a] = servers;
        const own = placeOf(a);
        stage.lead(a, stranger(kind));
        await stage.receive(1);
        a.ahead += 8_000;
        await stage.receive(1);
        stage.lead(a, { ...own, ahead: 14_000 });
        await stage.receive(3);
        expect(stage.lagged).toBeGreaterThanOrEqual(14_000);
      });
    },
  );
});
