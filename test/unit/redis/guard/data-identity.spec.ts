import { beforeEach, describe, expect, it } from '@jest/globals';
import { DataIdentity, reasonFor, relationOf } from '../../../../lib/redis/guard/data-identity.js';
import { FakeServer, Process } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

const NOT_DURABLE = { isDurable: false, syncsAlways: false };
const DECLARED = { isDurable: true, syncsAlways: false };
const SEEN = { isDurable: false, syncsAlways: true };

let clock: TestClock;
let server: FakeServer;

beforeEach(() => {
  clock = new TestClock();
  server = new FakeServer(clock, 'a').mark();
});

/** Another process serves the data that was kept. */
const restarted = (one: FakeServer): void => void ((one.run += "'"), (one.replid += "'"));
/** A new process loads the file that keeps the history. */
const loaded = (one: FakeServer): void => void (one.run += "'");
/** The first replica was attached, which gives the history of the data another name. */
const renamed = (one: FakeServer): void => void ((one.replid += "'"), (one.replicas = 1));
/** The server was a replica, and its backlog with the name of that history has ended. */
const forgetful = (one: FakeServer): void => void (one.replid += "'");
/** The server was a replica, and is now a master. */
const promoted = (one: FakeServer): void => void ((one.replid += "'"), (one.wasPromoted = true));
const denied = (one: FakeServer): void => void (one.run = one.replid = '');

describe('The data of a server', () => {
  it.each([
    ['with its own marker', 'known', (): void => undefined, NOT_DURABLE],
    ['without a marker', 'unknown', (one: FakeServer): void => void (one.fields = {}), DECLARED],
    ['whose first replica was attached', 'renamed', renamed, NOT_DURABLE],
    ['with another history and no replica', 'unknown', forgetful, NOT_DURABLE],
    ['that was promoted from a replica', 'unknown', promoted, NOT_DURABLE],
    ['that was promoted although `appendfsync` is `always`', 'unknown', promoted, SEEN],
    ['that was promoted and is declared durable', 'renamed', promoted, DECLARED],
    ['that was restarted', 'unknown', restarted, NOT_DURABLE],
    ['that another process loaded with its history', 'unknown', loaded, NOT_DURABLE],
    ['that was restarted and is declared durable', 'renamed', restarted, DECLARED],
    ['that was restarted and kept every write since then only', 'unknown', restarted, SEEN],
  ])('%s is %s', (_, relation, change, declared) => {
    change(server);
    expect(relationOf(server.report(), declared)).toBe(relation);
  });

  it.each([
    ['is renamed if it keeps every write before and after', SEEN, false, 'renamed'],
    ['is unknown if it no longer does so', NOT_DURABLE, false, 'unknown'],
    ['is unknown if another server failed over to it and back', SEEN, true, 'unknown'],
  ])('that was restarted and seen to keep every write %s', (_, declared, wasPromoted, relation) => {
    server.change({ durable: 1 });
    restarted(server);
    server.wasPromoted = wasPromoted;
    expect(relationOf(server.report(), declared)).toBe(relation);
  });

  it('is trusted on its marker if INFO is denied', () => {
    denied(server);
    expect(relationOf(server.report(), NOT_DURABLE)).toBe('known');
    server.mark();
    expect(relationOf(server.report(), NOT_DURABLE)).toBe('known');
  });

  it('is unknown after a failback to a server with the marker of a run before', () => {
    const { fields } = server;
    server.restart();
    server.fields = fields;
    expect(relationOf(server.report(), NOT_DURABLE)).toBe('unknown');
  });

  it.each([
    ['its data is new to all processes', (one: FakeServer): void => void (one.fields = {})],
    ['it was restarted', restarted],
    ['its data has another history', renamed],
    ['it was promoted from a replica', promoted],
  ])('is reported as unknown with the reason that %s', (reason, change) => {
    change(server);
    expect(reasonFor(server.report(), undefined)).toBe(reason);
  });

  it('is reported as lost if it had a marker', () => {
    const { marker } = server;
    server.restart();
    expect(reasonFor(server.report(), marker)).toBe('it lost its data');
  });
});

describe('DataIdentity', () => {
  const WAIT = 30_000;

  function identityOf(one: FakeServer): DataIdentity {
    const [link] = new Process(clock, [one]).links;
    return new DataIdentity(link!, () => 10_000);
  }

  it('votes with a marker whose `from` has passed, and not with one that is young', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.votes).toBe(true);
    server.mark({ from: server.time + 1, why: 'it was restarted' });
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.votes).toBe(false);
    expect(identity.quarantineAt(clock.read())).toEqual({ reason: 'it was restarted', remaining: 1 });
  });

  it('keeps voting with one nonce, whatever a clock that was set back shows', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    server.ahead = -3_600_000;
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.votes).toBe(true);
  });

  it('reports its longest possible wait on the clock of the process', () => {
    const identity = identityOf(server);
    server.change({ from: server.time + 36_000_000 });
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT });
    clock.stall(10_000);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT - 10_000 });
  });

  it('counts a wait from the arrival of the first report, and not from its request', () => {
    const identity = identityOf(server);
    server.change({ from: server.time + 36_000_000 });
    const asked = clock.read();
    clock.stall(1_000);
    identity.accept(server.report(), { asked, received: clock.read() }, WAIT);
    expect(identity.seenSince).toEqual(clock.read());
    clock.stall(10_000);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT - 10_000 });
  });

  it('begins an epoch with another nonce: earlier requests cannot count', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    const { epoch, revision } = identity;
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.epoch).toBe(epoch);
    server.mark();
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.revision).toBeGreaterThan(revision);
  });

  it('compares the history once per interval, and at once after a doubt', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    const compared = (): string => identity.historyToCompare(clock.read(), 1_000);
    // An answer such as LOADING compares nothing.
    expect([compared(), compared()]).toEqual([server.replid, server.replid]);
    identity.noteComparison('another history', clock.read());
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    expect(compared()).toBe('');
    clock.stall(1_001);
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    identity.mistrust('its clock was set back');
    expect(compared()).toBe(server.replid);
  });

  it('knows a ttl only for a while after its announcement, by either clock of this process', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    const sent = clock.read();
    expect(identity.knewOf(10_000, sent)).toBe(false);
    identity.noteAnnouncement(10_000, sent);
    const later = { ...sent, monotonic: sent.monotonic + 3_500 };
    expect(identity.knewOf(10_000, later)).toBe(true);
    expect(identity.knewOf(10_001, sent)).toBe(false);
    expect(identity.knewOf(10_000, { ...sent, monotonic: sent.monotonic + 3_501 })).toBe(false);
    // The monotonic clock stands still while a machine is suspended.
    expect(identity.knewOf(10_000, { ...sent, wall: sent.wall + 3_501 })).toBe(false);
    server.change({ nonce: 'another' });
    identity.accept(server.report(), { asked: sent, received: sent }, WAIT);
    expect(identity.knewOf(10_000, sent)).toBe(false);
  });

  it('does not vote earlier because its clock is set forward while this process watches', () => {
    server.quarantine(10_000);
    const identity = identityOf(server);
    const accept = (): void =>
      identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, 2 * WAIT);
    accept();
    clock.stall(1_000);
    server.ahead += 60_000;
    accept();
    expect(identity.votes).toBe(false);
    expect(identity.quarantineAt(clock.read())?.remaining).toBe(9_000);
    clock.stall(9_000);
    accept();
    expect(identity.votes).toBe(true);
  });

  it('votes at once when a marker says so, although this process has watched a longer quarantine', () => {
    server.quarantine(10_000);
    const identity = identityOf(server);
    const accept = (): void =>
      identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, 2 * WAIT);
    accept();
    server.change({ from: server.time });
    accept();
    expect(identity.votes).toBe(true);
  });

  it('stays in use while its identity is checked, but its earlier grants do not count', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    const { epoch } = identity;
    identity.check();
    expect(identity).toMatchObject({ votes: false, isChecked: true });
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.quarantineAt(clock.read())).toBeUndefined();
  });

  it('counts nothing while a step of its clock is being judged', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    identity.suspect('its clock has moved');
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'its clock has moved' });
  });
});
