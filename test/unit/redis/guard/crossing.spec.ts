import { afterEach, describe, expect, it } from '@jest/globals';
import { GuardStage, type Place, placeOf } from '../../support/guard-stage.js';
import { FakeServer, type Link, type Process } from '../../support/guarded-servers.js';
import type { TestClock } from '../../support/test-clock.js';

/** What a server answers that must not be written to. */
const REFUSED = undefined as unknown as boolean;

/** A stage on which no answer to a request counts whose marker is not the one that the process knows. */
class CrossingStage extends GuardStage {
  override sample(index: number): boolean {
    return this.servers[index]!.marker?.nonce === this.identity(index).nonce && super.sample(index);
  }
}

describe('Reports that cross what other connections show', () => {
  let stage: GuardStage;
  let clock: TestClock;
  let servers: GuardStage['servers'];
  let process: Process;

  afterEach(() => process.guard.close());

  /** Reports take `roundTrip` milliseconds. */
  async function use(roundTrip: number, { isDurable = false } = {}): Promise<void> {
    stage = new CrossingStage({ isDurable });
    ({ clock, servers, process } = stage);
    process.links.forEach((link, index) => delay(link, servers[index]!, roundTrip / 2));
    await process.connectAll();
    await stage.receive(10);
  }

  function delay(link: Link, server: FakeServer, milliseconds: number): void {
    const beat = link.beat.bind(link);
    link.beat = async (announcement) =>
      server.marker?.nonce === link.identity!.nonce ? beat(announcement) : undefined;
    link.report = async () => {
      link.readings++;
      await after(milliseconds);
      const report = server.isDown ? undefined : server.report();
      await link.held;
      await after(milliseconds);
      return report;
    };
  }

  function after(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void clock.schedule(milliseconds, resolve));
  }

  /** Until the first link has been asked for another report. */
  async function nextReading(): Promise<void> {
    const { readings } = process.links[0]!;
    for (let waited = 0; waited < 2_000 && process.links[0]!.readings === readings; waited++) await clock.advance(1);
    expect(process.links[0]!.readings).toBeGreaterThan(readings);
  }

  const empty = (): Place => ({ ...placeOf(new FakeServer(clock, 'spare')), fields: {} });

  /** The server with its own data, in another process and under another history. */
  const restarted = (own: Place): Place => ({ ...own, run: 'a:later', replid: 'a:later history' });

  const changes = [
    ['is empty', (a: FakeServer) => void a.restart()],
    ['has its first replica', (a: FakeServer) => void Object.assign(a, { replid: 'a:later', replicas: 1 })],
    [
      'is declared durable and was restarted',
      (a: FakeServer) => void Object.assign(a, { replid: 'a:later', run: 'a:other' }),
    ],
  ] as const;
  it.each(changes.flatMap(([kind, change]) => [10, 40].map((roundTrip) => [kind, roundTrip, change] as const)))(
    'let a master be marked that %s, however many requests it refuses in %i ms',
    async (kind, roundTrip, change) => {
      await use(roundTrip, { isDurable: kind.includes('durable') });
      const [a] = servers;
      change(a);
      const { identity } = process.links[0]!;
      // A process that holds many locks extends them all the time: each refused request asks for the identity of the server.
      for (let request = 0; request < 600; request++) {
        if (a.marker?.nonce !== identity!.nonce || a.fields['replid'] !== a.replid) {
          identity!.check();
          void after(roundTrip).then(() => {
            process.connect(a);
            identity!.endCheck();
          });
        }
        await clock.advance(5);
      }
      expect(a.fields['replid']).toBe(a.replid);
    },
  );

  it.each([1, 5])(
    'do not judge a step over and over while a majority refuses its marker: round trip %i ms',
    async (roundTrip) => {
      await use(roundTrip);
      const [, b, c] = servers;
      for (const link of process.links.slice(1)) link.mark = () => Promise.resolve(REFUSED);
      // This process stands still.
      stage.standStill(5_000);
      b.restart();
      c.restart();
      const { readings } = process.links[0]!;
      process.connect(b);
      process.connect(c);
      await clock.advance(10_000);
      // Four readings a second, and a few of each judgement.
      expect(process.links[0]!.readings - readings).toBeLessThan(200);
    },
  );

  it('do not let a declared master vote that was read as empty while its step was judged', async () => {
    await use(2, { isDurable: true });
    const [a, , c] = servers;
    const [first, , third] = process.links as [Link, Link, Link];
    // So that the masters are read each second.
    c.quarantine(60_000);
    process.connect(c);
    await stage.receive(3);
    await nextReading();
    await clock.advance(900);
    const own = placeOf(a);
    third.held = new Promise(() => undefined);
    // One odd sample. The judgement has the answer of a, and waits for that of c.
    process.guard.sampled(first.identity!, clock.read(), a.time + 9_000);
    await clock.advance(10);
    third.held = undefined;
    Object.assign(a, empty());
    await nextReading();
    await clock.advance(10);
    expect(first.identity!.isSuspect).toBe(true);
    stage.lead(a, restarted(own));
    await stage.receive(2);
    expect(process.votes[0]).toBe(false);
  });

  it('do not let a declared master vote that was read as empty before another connection met it', async () => {
    await use(2, { isDurable: true });
    const [a, b] = servers;
    const [, , third] = process.links as [Link, Link, Link];
    const own = placeOf(a);
    const answer = third.hold();
    Object.assign(a, empty());
    // Any doubt begins a reading.
    stage.lead(b, { ...placeOf(b), replid: 'b:later', replicas: 1 });
    await clock.advance(20);
    stage.lead(a, restarted(own));
    answer();
    await stage.receive(2);
    expect(process.votes[0]).toBe(false);
  });

  it('do not let a declared master vote that was read before it was met as empty once more', async () => {
    await use(0, { isDurable: true });
    const [a] = servers;
    const [first, , third] = process.links as [Link, Link, Link];
    const own = placeOf(a);
    const mark = first.mark.bind(first);
    first.mark = () => Promise.resolve(REFUSED);
    stage.lead(a, empty());
    await clock.advance(100);
    const answer = third.hold();
    Object.assign(a, own);
    await nextReading();
    await clock.advance(1);
    stage.lead(a, empty());
    answer();
    for (let turn = 0; turn < 200 && !process.votes[0]; turn++) await Promise.resolve();
    first.mark = mark;
    stage.lead(a, restarted(own));
    await stage.receive(1);
    expect(process.votes[0]).toBe(false);
  });

  it.each([0, 3, 8])('notice a clock that is set during a detour, after %i accusations', async (accusations) => {
    await use(0);
    const [a] = servers;
    for (let count = 0; count < accusations; count++) {
      a.ahead += 9_000;
      await stage.receive(21);
      expect(a.marker?.reason).toMatch(/jumped/);
      expect(process.votes[0]).toBe(true);
    }
    const { ahead, ...own } = placeOf(a);
    const nonce = a.marker!.nonce;
    stage.lead(a, placeOf(new FakeServer(clock, 'spare').mark()));
    await stage.receive(2);
    stage.lead(a, { ...own, ahead: ahead + 9_000 });
    await stage.receive(3);
    expect(a.marker!.nonce).not.toBe(nonce);
    expect(process.votes[0]).toBe(false);
  });
});
