import { beforeEach, describe, expect, it } from '@jest/globals';
import { reasonFor, relationOf } from '../../../../lib/redis/guard/data-record.js';
import { FakeServer } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

const NOT_DURABLE = { isDurable: false, nonce: '' };
const DECLARED = { isDurable: true, nonce: '' };

let server: FakeServer;

beforeEach(() => {
  server = new FakeServer(new TestClock(), 'a').mark();
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
