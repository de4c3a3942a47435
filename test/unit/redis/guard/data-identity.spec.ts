import { beforeEach, describe, expect, it } from '@jest/globals';
import { DataIdentity } from '../../../../lib/redis/guard/data-identity.js';
import { FakeServer, Process } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let server: FakeServer;

beforeEach(() => {
  clock = new TestClock();
  server = new FakeServer(clock, 'a').mark();
});

describe('DataIdentity', () => {
  const WAIT = 30_000;

  function identityOf(one: FakeServer): DataIdentity {
    const [link] = new Process(clock, [one]).links;
    return new DataIdentity(link!, () => 10_000);
  }

  // Protocol 8.2
  it('votes with a marker whose `from` has passed, and not with one that is young', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    expect(identity.votes).toBe(true);
    server.mark({ from: server.time + 1, why: 'it was restarted' });
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
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
    const identity = new DataIdentity(link!, () => 10_000);
    const { fields } = server;
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    server.run += "'";
    change();
    if (identity.relationOf(server.report()) === 'unknown') identity.doubt(server.report(), clock.read());
    identity.noteDisconnect();
    server.run += "'";
    server.replid += "'";
    server.wasPromoted = false;
    server.fields = fields;
    expect(identity.relationOf(server.report())).toBe(relation);
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

  // Protocol 8.1
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
    clock.stall(1_000);
    expect(compared()).toBe('');
    clock.stall(1);
    expect(compared()).toBe(server.replid);
    identity.noteComparison(server.replid, clock.read());
    identity.mistrust('its clock was set back');
    expect(compared()).toBe(server.replid);
  });

  it('knows of no announced ttl once its data is other data', () => {
    const identity = identityOf(server);
    const accept = (): void => identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    accept();
    identity.confirmedTtl.confirm(10_000, clock.read());
    accept();
    expect(identity.confirmedTtl.covers(10_000, clock.read())).toBe(true);
    server.change({ nonce: 'another' });
    accept();
    expect(identity.confirmedTtl.covers(10_000, clock.read())).toBe(false);
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

  it('is unknown for the reason that was seen first, until it is known again', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    const reasonAfter = (change: () => void): string => {
      change();
      identity.doubt(server.report(), clock.read());
      return identity.reason;
    };
    expect(reasonAfter(() => (server.fields = {}))).toBe('it lost its data');
    expect(reasonAfter(() => (server.wasPromoted = true))).toBe('it lost its data');
    expect(reasonAfter(() => void server.mark({ run: 'another' }))).toBe('it lost its data');
    identity.noteDisconnect();
    expect(reasonAfter(() => undefined)).toBe('it was promoted from a replica');
  });

  it('does not vote for the first reason that was given', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    identity.mistrust('it was restarted');
    identity.mistrust('its identity is being checked');
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'it was restarted' });
  });

  it('counts nothing while a step of its clock is being judged', () => {
    const identity = identityOf(server);
    identity.accept(server.report(), { asked: clock.read(), received: clock.read() }, WAIT);
    identity.suspect('its clock has moved');
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'its clock has moved' });
  });
});
