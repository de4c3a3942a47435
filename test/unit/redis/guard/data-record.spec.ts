import { beforeEach, describe, expect, it } from '@jest/globals';
import { reasonFor, relationOf } from '../../../../lib/redis/data-record.js';
import { QuarantineWait } from '../../../../lib/redis/guard/server-clock.js';
import { ServerRecord } from '../../../../lib/redis/guard/server-record.js';
import { FakeServer, Process } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

const NOT_DURABLE = { isDurable: false, nonce: '' };
const DECLARED = { isDurable: true, nonce: '' };

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

// Protocol 8.2
describe('The data of a server', () => {
  it.each([
    ['with its own marker', 'known', (): void => undefined, NOT_DURABLE],
    ['without a marker', 'unknown', (one: FakeServer): void => void (one.fields = {}), DECLARED],
    ['whose first replica was attached', 'renamed', renamed, NOT_DURABLE],
    ['with another history and no replica', 'unknown', forgetful, NOT_DURABLE],
    ['that was promoted from a replica', 'unknown', promoted, NOT_DURABLE],
    ['that was promoted and is declared durable', 'unknown', promoted, DECLARED],
    ['with another history and no replica that is declared durable', 'unknown', forgetful, DECLARED],
    ['that was restarted', 'unknown', restarted, NOT_DURABLE],
    ['that another process loaded with its history', 'unknown', loaded, NOT_DURABLE],
    ['that was restarted and is declared durable', 'renamed', restarted, DECLARED],
  ])('%s is %s', (_, relation, change, declared) => {
    change(server);
    expect(relationOf(server.report(), declared)).toBe(relation);
  });

  it.each([
    ['is renamed if this process knows the same data of the address', 'same', false, 'renamed'],
    ['is renamed if this process knows no data of the address', '', false, 'renamed'],
    ['is unknown if this process knows other data of the address', 'other', false, 'unknown'],
    ['is unknown if another server failed over to it and back', 'same', true, 'unknown'],
  ])('that was restarted and is declared durable %s', (_, known, wasPromoted, relation) => {
    const nonce = known === 'same' ? server.marker!.nonce : known;
    restarted(server);
    server.wasPromoted = wasPromoted;
    expect(relationOf(server.report(), { isDurable: true, nonce })).toBe(relation);
  });

  it('that a process of an older version called durable is not believed to be', () => {
    server.fields['durable'] = '1';
    restarted(server);
    expect(relationOf(server.report(), NOT_DURABLE)).toBe('unknown');
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

describe('ServerRecord', () => {
  const WAIT = 30_000;

  let identity: ServerRecord;

  beforeEach(() => {
    const [link] = new Process(clock, [server]).links;
    identity = new ServerRecord(link!, () => 10_000);
  });

  /** Reads the server, and finds that its data is known. */
  const accept = (): void => identity.accept(server.report(), clock.read(), clock.read());

  // Protocol 8.2
  it('votes with a marker whose `from` has passed, and not with one that is young', () => {
    accept();
    expect(identity.votes).toBe(true);
    server.mark({ from: server.time + 1, why: 'it was restarted' });
    accept();
    expect(identity.votes).toBe(false);
    expect(identity.quarantineAt(clock.read())).toEqual({ reason: 'it was restarted', remaining: 1 });
  });

  it.each([
    ['known', 'the data of a declared master', 'renamed', (): void => undefined],
    ['unknown', 'data that was promoted', 'unknown', (): void => void (server.wasPromoted = true)],
    ['unknown', 'no data', 'unknown', (): void => void (server.fields = {})],
  ])('takes data for %s that is restarted after it saw %s', (_, __, relation, change) => {
    const [link] = new Process(clock, [server]).links;
    link!.isDurable = true;
    identity = new ServerRecord(link!, () => 10_000);
    const { fields } = server;
    accept();
    server.run += "'";
    change();
    if (identity.relationOf(server.report()) === 'unknown') identity.noteUnknown(server.report(), clock.read());
    identity.noteDisconnect();
    server.run += "'";
    server.replid += "'";
    server.wasPromoted = false;
    server.fields = fields;
    expect(identity.relationOf(server.report())).toBe(relation);
  });

  it('keeps voting with one nonce, whatever a clock that was set back shows', () => {
    accept();
    server.ahead = -3_600_000;
    accept();
    expect(identity.votes).toBe(true);
  });

  it('reports its longest possible wait on the clock of the process', () => {
    const from = server.time + 36_000_000;
    server.change({ from, at: from - WAIT });
    accept();
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT });
    clock.stall(10_000);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT - 10_000 });
  });

  it('counts a wait from the arrival of the first report, and not from its request', () => {
    const from = server.time + 36_000_000;
    server.change({ from, at: from - WAIT });
    const asked = clock.read();
    clock.stall(1_000);
    identity.accept(server.report(), asked, clock.read());
    expect(identity.seenSince).toEqual(clock.read());
    clock.stall(10_000);
    accept();
    expect(identity.quarantineAt(clock.read())).toMatchObject({ remaining: WAIT - 10_000 });
  });

  it('begins an epoch with another nonce: earlier requests cannot count', () => {
    accept();
    const { epoch, revision } = identity;
    accept();
    expect(identity.epoch).toBe(epoch);
    server.mark();
    accept();
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.revision).toBeGreaterThan(revision);
  });

  // Protocol 8.1
  it('compares the history once per interval, and at once after a doubt', () => {
    accept();
    const compared = (): string => identity.historyToCompare(clock.read());
    // An answer such as LOADING compares nothing.
    expect([compared(), compared()]).toEqual([server.replid, server.replid]);
    identity.noteComparison('another history', clock.read());
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    expect(compared()).toBe('');
    clock.stall(1_000);
    expect(compared()).toBe('');
    clock.stall(1);
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    clock.suspend(1_001);
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    identity.doubt('its clock was set back');
    expect(compared()).toBe(server.replid);
  });

  it('does not count a comparison that was sent before a standstill, and keeps the latest one', () => {
    accept();
    const [early, late] = [clock.read(), (clock.stall(600), clock.read())];
    identity.noteComparison(server.replid, late);
    identity.noteComparison(server.replid, early);
    clock.stall(600);
    expect(identity.historyToCompare(clock.read())).toBe('');
    identity.noteStandstill(clock.read().monotonic);
    identity.noteComparison(server.replid, late);
    expect(identity.historyToCompare(clock.read())).toBe(server.replid);
  });

  // Protocol 8.9
  it('knows no ttl before the server has confirmed one', () => {
    identity.confirmTtl(0, clock.read());
    expect(identity.knewTtl(1, clock.read())).toBe(false);
  });

  it('knows a ttl up to the confirmed one, and no larger one', () => {
    identity.confirmTtl(10_000, clock.read());
    expect([identity.knewTtl(10_000, clock.read()), identity.knewTtl(10_001, clock.read())]).toEqual([true, false]);
  });

  it('knows a ttl for 3.5 s after the announcement was sent, by both clocks of this process', () => {
    const sent = clock.read();
    identity.confirmTtl(10_000, sent);
    expect(identity.knewTtl(10_000, { ...sent, monotonic: sent.monotonic + 3_500 })).toBe(true);
    expect(identity.knewTtl(10_000, { ...sent, monotonic: sent.monotonic + 3_501 })).toBe(false);
    // The monotonic clock stands still while a machine is suspended.
    expect(identity.knewTtl(10_000, { ...sent, wall: sent.wall + 3_501 })).toBe(false);
  });

  it('knows of no announced ttl once its data is other data', () => {
    accept();
    identity.confirmTtl(10_000, clock.read());
    accept();
    expect(identity.knewTtl(10_000, clock.read())).toBe(true);
    server.change({ nonce: 'another' });
    accept();
    expect(identity.knewTtl(10_000, clock.read())).toBe(false);
  });

  it('does not vote earlier because its clock is set forward while this process watches', () => {
    server.quarantine(10_000);
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
    accept();
    server.change({ from: server.time });
    accept();
    expect(identity.votes).toBe(true);
  });

  it('stays in use while its identity is checked, but its earlier grants do not count', () => {
    accept();
    const { epoch } = identity;
    identity.check();
    expect(identity).toMatchObject({ state: 'checking' });
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.quarantineAt(clock.read())).toBeUndefined();
  });

  it('is unknown for the reason that was seen first, until it is known again', () => {
    accept();
    const reasonAfter = (change: () => void): string => {
      change();
      identity.noteUnknown(server.report(), clock.read());
      return identity.reason;
    };
    expect(reasonAfter(() => (server.fields = {}))).toBe('it lost its data');
    expect(reasonAfter(() => (server.wasPromoted = true))).toBe('it lost its data');
    expect(reasonAfter(() => void server.mark({ run: 'another' }))).toBe('it lost its data');
    identity.noteDisconnect();
    expect(reasonAfter(() => undefined)).toBe('it was promoted from a replica');
  });

  it.each([
    [2_400, Infinity, false],
    [2_600, Infinity, true],
    [450, 100, false],
    [600, 505, true],
  ])('waits anew if it was not read for %i ms, and the shortest wait is %d ms: %s', async (unread, wait, isAnew) => {
    identity.noteUnknown(server.report(), clock.read(), wait);
    const { unknownSince } = identity;
    await clock.advance(unread);
    identity.noteUnknown(server.report(), clock.read(), wait);
    expect(identity.unknownSince !== unknownSince).toBe(isAnew);
  });

  it('does not vote for the first reason that was given', () => {
    accept();
    identity.doubt('it was restarted');
    identity.doubt('its identity is being checked');
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'it was restarted' });
  });

  it('counts nothing while a step of its clock is being judged', () => {
    accept();
    identity.suspect('its clock has moved');
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'its clock has moved' });
  });
});

it('QuarantineWait reports at least one millisecond until its end', () => {
  const at = (milliseconds: number) => ({ monotonic: 1_000 + milliseconds, wall: 1_700_000_000_000 + milliseconds });
  const wait = new QuarantineWait();
  expect(wait.remainingAt(at(0))).toBe(1);
  wait.limit(at(0), 3_000);
  expect([wait.remainingAt(at(1_000)), wait.remainingAt(at(5_000))]).toEqual([2_000, 1]);
});
