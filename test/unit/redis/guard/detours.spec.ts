import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { FakeServer, Process, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

const KINDS = ['known', 'with its first replica', 'marked without the permission for INFO', 'empty'] as const;
type Kind = (typeof KINDS)[number];
type Place = Pick<FakeServer, 'run' | 'replid' | 'fields' | 'ahead' | 'replicas'>;

describe('An address that leads to another server and back', () => {
  let clock: TestClock;
  let servers: FakeServer[];
  let process: Process;

  afterEach(() => process.guard.close());

  async function use(count: number, clusters: number, { isDurable = false } = {}): Promise<void> {
    clock = new TestClock();
    servers = threeServers(clock).slice(0, count);
    for (const server of servers) server.mark();
    process = new Process(clock, servers);
    for (const link of process.links) link.isDurable = isDurable;
    for (let i = 0; i < clusters; i++) process.guard.addCluster(() => true);
    await process.connectAll();
    await receive(10);
  }

  function sample(index: number): void {
    process.guard.sampled(process.links[index]!.identity!, clock.read(), servers[index]!.time);
  }

  /** All servers that answer do so once in each of so many seconds. */
  async function receive(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1_000);
      servers.forEach((server, index) => {
        if (!server.isDown) sample(index);
      });
    }
    await clock.settle();
  }

  function placeOf({ run, replid, fields, ahead, replicas }: FakeServer): Place {
    return { run, replid, fields, ahead, replicas };
  }

  /** Another server, with its own data and clock. */
  function stranger(kind: Kind, ahead = 0): Place {
    const server = Object.assign(new FakeServer(clock, 'spare'), { run: 'spare:run', replid: 'spare:history', ahead });
    if (kind !== 'empty') server.mark();
    if (kind === 'with its first replica') Object.assign(server, { replid: 'spare:later', replicas: 1 });
    if (kind === 'marked without the permission for INFO') server.change({ run: '' });
    return placeOf(server);
  }

  function lead(server: FakeServer, place: Place): void {
    Object.assign(server, place);
    process.connect(server);
  }

  const standstills = (): number => process.lags.reduce((sum, lag) => sum + lag, 0);

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
        await use(count, clusters);
        const [a] = servers as [FakeServer];
        const own = placeOf(a);
        lead(a, stranger(kind, ahead));
        await clock.advance(lasts);
        lead(a, own);
        await receive(2);
        expect(a.marker?.reason).toBe('');
        expect(process.votes).toEqual(servers.map(() => true));
        expect(process.lags).toEqual([]);
      },
    );
  });

  it.each(KINDS)('keeps the accusation of a master whose clock was set: %s', async (kind) => {
    await use(3, 0);
    const [a] = servers as [FakeServer];
    a.ahead += 9_000;
    sample(0);
    const { identity } = process.links[0]!;
    for (let turn = 0; turn < 200 && identity!.step === undefined; turn++) await Promise.resolve();
    expect(identity!.step).toBeDefined();
    // The connection breaks before the accusation is written.
    a.isDown = true;
    await clock.advance(500);
    a.isDown = false;
    const own = placeOf(a);
    lead(a, stranger(kind));
    await clock.advance(1_000);
    lead(a, own);
    await receive(3);
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
      await use(3, 0, { isDurable: true });
      const [a] = servers as [FakeServer];
      const own = placeOf(a);
      const [link] = process.links;
      // The other server refuses to be marked.
      const refusing = jest.spyOn(link!, 'mark').mockResolvedValue(false);
      lead(a, stranger(kind));
      await clock.advance(lasts);
      refusing.mockRestore();
      lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
      await receive(1);
      expect(a.marker?.reason).toBe('');
      expect(process.votes[0]).toBe(true);
    },
  );

  it('does not let a declared master vote that restarts after unknown data, which only a judgement of clocks has read', async () => {
    await use(3, 0, { isDurable: true });
    const [a] = servers as [FakeServer];
    const own = placeOf(a);
    a.ahead += 9_000;
    const [sent, time] = [clock.read(), a.time];
    Object.assign(a, stranger('empty'));
    process.guard.sampled(process.links[0]!.identity!, sent, time);
    await clock.settle();
    lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
    await receive(1);
    expect(process.votes[0]).toBe(false);
  });

  it('does not let a declared master vote that restarts after unknown data, whose late report arrives after that', async () => {
    await use(3, 0, { isDurable: true });
    const [a] = servers as [FakeServer];
    a.quarantine(2_000);
    process.connect(a);
    await clock.advance(1_900);
    const own = placeOf(a);
    const [link, , slow] = process.links;
    let answers: () => void = () => undefined;
    slow!.held = new Promise((resolve) => (answers = resolve));
    const { readings } = link!;
    for (let waited = 0; waited < 400 && link!.readings === readings; waited++) await clock.advance(1);
    for (let waited = 0; waited < 400 && a.marker!.from > a.time; waited++) await clock.advance(1);
    lead(a, stranger('empty'));
    answers();
    slow!.held = undefined;
    for (let turn = 0; turn < 100 && !process.votes[0]; turn++) await Promise.resolve();
    lead(a, { ...own, run: 'a:later', replid: 'a:later history' });
    await receive(4);
    expect(a.marker?.reason).not.toBe('');
  });

  describe('while a step is judged', () => {
    /** The address of b leads to another server that is known already, from the judgement on for a while. */
    async function judgeWithDetour(ahead: number, step: () => void): Promise<void> {
      await use(3, 0);
      const [, b] = servers as [FakeServer, FakeServer];
      const own = placeOf(b);
      const other = stranger('known', ahead);
      lead(b, other);
      await receive(3);
      lead(b, own);
      await receive(3);
      expect(process.lags).toEqual([]);
      // c hangs for a moment, and the judgement waits for it.
      process.links[2]!.held = new Promise(() => undefined);
      const before = servers.map((server) => server.ahead);
      step();
      const moved = b.ahead - before[1]!;
      sample(0);
      await clock.settle();
      lead(b, { ...other, ahead: ahead + moved });
      await clock.advance(300);
      process.links[2]!.held = undefined;
      lead(b, { ...own, ahead: moved });
      await receive(3);
    }

    it.each([0, -5_000, 5_000])('accuses no master with a right clock: other server %i ms ahead', async (ahead) => {
      // This process stands still.
      await judgeWithDetour(ahead, () => servers.forEach((server) => (server.ahead += 5_000)));
      expect(servers.map(({ marker }) => marker?.reason)).toEqual(['', '', '']);
      expect(process.votes).toEqual([true, true, true]);
      expect(standstills()).toBeGreaterThanOrEqual(5_000);
    });

    it.each([0, -9_000])('accuses a master whose clock was set: other server %i ms ahead', async (ahead) => {
      await judgeWithDetour(ahead, () => (servers[0]!.ahead += 9_000));
      expect(servers[0]!.marker?.reason).toMatch(/jumped/);
      expect(process.lags).toEqual([]);
    });
  });

  describe.each(['known', 'empty'] as const)(
    'while it leads to a server that is %s and a standstill is noticed',
    (kind) => {
      it('notices afterwards that the clock of the first one was set meanwhile', async () => {
        await use(3, 0);
        const [a] = servers as [FakeServer];
        const own = placeOf(a);
        lead(a, stranger(kind));
        await receive(1);
        for (const server of servers) server.ahead += 8_000;
        await receive(1);
        expect(standstills()).toBeGreaterThanOrEqual(8_000);
        lead(a, { ...own, ahead: 17_000 });
        await receive(3);
        expect(a.marker?.reason).toMatch(/jumped/);
        expect(process.votes[0]).toBe(false);
      });

      it('notices a second one afterwards, also if only that server shows it', async () => {
        await use(1, 2);
        const [a] = servers as [FakeServer];
        const own = placeOf(a);
        lead(a, stranger(kind));
        await receive(1);
        a.ahead += 8_000;
        await receive(1);
        lead(a, { ...own, ahead: 14_000 });
        await receive(3);
        expect(standstills()).toBeGreaterThanOrEqual(14_000);
      });
    },
  );
});
