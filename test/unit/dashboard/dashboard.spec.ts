import { describe, expect, it, jest } from '@jest/globals';
import type { CanActivate } from '@nestjs/common';
import { RedlockDashboardModule, type RedlockDashboardOptions } from 'nestjs-redlock/dashboard';
import { ManualClock, memoryLockService, MemoryMaster } from 'nestjs-redlock/testing';
import {
  availabilityOf,
  EventLog,
  type JobOverview,
  ServiceWatch,
  watchJobs,
} from '../../../lib/dashboard/service-watch.js';
import { hostName, refuseOtherHosts } from '../../../lib/dashboard/hosts.js';
import { parseOptions } from '../../../lib/settings/table.js';
import { SETTINGS } from '../../../lib/dashboard/options.js';
import { SystemClock } from '../../../lib/runtime/system-clock.js';
import { down, quarantined, summaryOf, voting } from '../support/statuses.js';

class AdminGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

const forRoot = (options: object): unknown => RedlockDashboardModule.forRoot(options as RedlockDashboardOptions);

describe('RedlockDashboardModule', () => {
  it.each([[{}], [{ guards: undefined }], [{ guards: [] }], [{ guards: true }], [{ guards: 'AdminGuard' }]])(
    'refuses %j, because it has no guard, and names what to write',
    (options) => {
      expect(() => forRoot(options)).toThrow(
        /^guards must be a list of at least one guard, such as \[AdminGuard\], .* write guards: 'none' if a global guard or a proxy protects it, got/,
      );
    },
  );

  it('accepts classes and instances of guards, an explicit none, and a path with and without slashes', () => {
    for (const guards of [[AdminGuard], [new AdminGuard()], [AdminGuard, new AdminGuard()], 'none']) {
      expect(forRoot({ guards })).toMatchObject({ module: RedlockDashboardModule });
    }
    for (const path of ['admin/locks', '/admin/locks', '/admin/locks/']) {
      expect(() => forRoot({ guards: 'none', path })).not.toThrow();
    }
  });

  it.each([
    [{ guards: [{}] }, 'guards[0] must be the class or an instance of a guard of Nest, got an object (Object)'],
    [{ guards: [AdminGuard, 'admin'] }, 'guards[1] must be the class or an instance of a guard of Nest, got "admin"'],
    [{ guards: 'none', path: '' }, 'path must be a path without parameters, such as \'admin/locks\', got ""'],
    [{ guards: 'none', path: ':id' }, 'path must be a path without parameters, such as \'admin/locks\', got ":id"'],
    [{ guards: 'none', actions: 'yes' }, 'actions must be true or false, got "yes"'],
    [{ guards: 'none', actor: 'anna' }, 'actor must be a function that names the user of a request, got "anna"'],
    ...[
      ...['admin.example.com', 'https://admin.example.com/locks', 'ftp://admin.example.com', 'https://*.example.com'],
      ...['https://anna@admin.example.com', '*', '', 5, null],
    ].map((origin): [object, string] => [
      { guards: 'none', origins: ['https://ok.example', origin] },
      "origins[1] must be an absolute origin without a path, such as 'https://admin.example.com', got",
    ]),
    [{ guards: 'none', origins: 'https://a.example' }, "origins must be a list of origins, such as ['https://admin"],
    [{ guards: 'none', action: true }, 'options may hold known options only (did you mean actions?), got "action"'],
  ])('refuses %j', (options, message) => expect(() => forRoot(options)).toThrow(message));

  it('accepts origins with a port, in upper case and with a slash at the end', () => {
    const origins = [
      'https://Admin.Example.com/',
      'http://localhost:3000',
      'http://[::1]:8080',
      'https://a.example:443',
    ];
    expect(() => forRoot({ guards: 'none', origins })).not.toThrow();
    expect(parseOptions(SETTINGS, { origins }).origins).toEqual([
      ...['https://admin.example.com', 'http://localhost:3000', 'http://[::1]:8080', 'https://a.example'],
    ]);
  });

  it('refuses asynchronous options without a guard or a factory', () => {
    const forRootAsync = (options: object): unknown => RedlockDashboardModule.forRootAsync(options as never);
    expect(() => forRootAsync({ useFactory: () => ({}) })).toThrow('guards must be a list of at least one guard');
    expect(() => forRootAsync({ guards: 'none' })).toThrow('useFactory must be a function that returns the settings');
    expect(() => forRootAsync({ guards: 'none', useFactory: () => ({}), actions: true })).toThrow('known options only');
  });
});

const isServed = (headers: Readonly<Record<string, string>>, hosts: readonly string[] = []): boolean => {
  try {
    refuseOtherHosts(headers, hosts);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 403, message: expect.stringContaining('option hosts') });
    return false;
  }
};

describe('The option hosts', () => {
  it.each([[[]], ['admin.example.com'], [{}], [null]])('is refused as a whole: %j', (hosts) => {
    expect(() => parseOptions(SETTINGS, { hosts: hosts as never })).toThrow(
      "hosts must be a list of at least one host name, such as ['admin.example.com'], got",
    );
  });

  it.each([
    ...['http://admin.example.com', 'admin.example.com/locks', 'admin.example.com:3000', '[::1]:3000', '127.0.0.1:80'],
    ...['*', '*.example.com', '.example.com', 'admin.*', 'anna@example.com', 'a b', ' admin', '', '%61', 5, null],
    ...[undefined, 'a,b', '[::1', 'a?b', 'a#b', 'a\\b'],
  ])('is refused with the element %j', (host) => {
    expect(() => parseOptions(SETTINGS, { hosts: ['ok.example', host as never] })).toThrow(
      "hosts[1] must be the name of a host alone, such as 'admin.example.com', without scheme, port, path and wildcard",
    );
  });

  it('takes names as browsers write them', () => {
    const hosts = ['Admin.Example.com', 'ops', 'bücher.example', 'my_app', 'a.example.', '10.0.0.1', '::1', '[::1]'];
    expect(hosts.map((host) => hostName('hosts', host))).toEqual([
      ...['admin.example.com', 'ops', 'xn--bcher-kva.example', 'my_app', 'a.example', '10.0.0.1', '[::1]', '[::1]'],
    ]);
  });
});

describe('The host of a request', () => {
  it.each([
    ...['127.0.0.1', '127.0.0.1:3000', '10.1.2.3', '0.0.0.0:80', '[::1]', '[::1]:3000', '[2001:db8::1]:443'],
    ...['localhost', 'LocalHost:3000', 'localhost.', 'app.localhost:8080'],
  ])('is accepted if no site can have it: %s', (host) =>
    expect([isServed({ host }), isServed({ ':authority': host })]).toEqual([true, true]),
  );

  it.each([
    ...['evil.example', 'evil.example:3000', 'localhost.evil.example', 'evil-localhost', 'notlocalhost', '.localhost'],
    ...['127.0.0.1.evil.example', '127.0.0.1@evil.example', 'evil.example#127.0.0.1', 'evil.example/127.0.0.1', ''],
    ...[
      'evil.example, 127.0.0.1',
      '127.0.0.1 evil.example',
      '[::1].evil.example',
      '[evil.example]',
      '127.0.0.1:x',
      'a:1:2',
    ],
  ])('is refused otherwise: %s', (host) => {
    expect([isServed({ host }), isServed({ ':authority': host })]).toEqual([false, false]);
    expect(isServed({ host: 'localhost', 'x-forwarded-host': host || 'evil.example' })).toBe(false);
    expect(isServed({ host: 'localhost', forwarded: `for=1.2.3.4;host="${host || 'evil.example'}"` })).toBe(false);
  });

  it('has to be there', () => expect(isServed({})).toBe(false));

  it('is accepted if the option names it, with any port and in any spelling', () => {
    for (const host of ['admin.example', 'Admin.Example:8443', 'admin.example.', 'admin.example:80']) {
      expect([host, isServed({ host }, ['admin.example'])]).toEqual([host, true]);
    }
    for (const host of ['example', 'x.admin.example', 'admin.example.evil.example', 'admin_example']) {
      expect([host, isServed({ host }, ['admin.example'])]).toEqual([host, false]);
    }
  });

  it('can only be refused by what a proxy forwards', () => {
    const hosts = ['admin.example'];
    expect(isServed({ host: '10.0.0.1', 'x-forwarded-host': 'admin.example' }, hosts)).toBe(true);
    expect(isServed({ host: '10.0.0.1', forwarded: 'for=1.2.3.4;proto=https;host=admin.example:443' }, hosts)).toBe(
      true,
    );
    expect(isServed({ host: '10.0.0.1', forwarded: 'for=1.2.3.4, for=2.3.4.5' }, hosts)).toBe(true);
    expect(isServed({ host: '10.0.0.1', 'x-forwarded-host': 'evil.example, admin.example' }, hosts)).toBe(false);
    expect(isServed({ host: '10.0.0.1', forwarded: 'host=admin.example, host=evil.example' }, hosts)).toBe(false);
    expect(isServed({ host: 'evil.example', 'x-forwarded-host': 'admin.example' }, hosts)).toBe(false);
  });
});

describe('availabilityOf', () => {
  it('warns when no other master may fail', () => {
    expect(availabilityOf(summaryOf(voting('a')))).toEqual({ reason: '1 of 1 master votes.' });
    expect(availabilityOf(summaryOf(voting('a'), voting('b'), down('c')))).toEqual({
      reason: '2 of 3 masters vote. No other master may fail. c is down: gone.',
    });
    const four = ['a', 'b', 'c', 'd'].map(voting);
    expect(availabilityOf(summaryOf(...four, down('e'))).reason).toBe('4 of 5 masters vote. e is down: gone.');
  });

  it('knows no time if quarantined masters are not enough', () => {
    const availability = availabilityOf(summaryOf(down('a'), down('b'), quarantined('c', 5_000)));
    expect(availability).not.toHaveProperty('opensIn');
    expect(availability.reason).toMatch(
      /^0 of 3 masters vote, 2 are needed. a is down: .* c is quarantined: waits after/,
    );
  });
});

function watching() {
  const master = new MemoryMaster(new SystemClock());
  const ask = jest.spyOn(master, 'ask');
  const locks = memoryLockService({ masters: [master] });
  const events = new EventLog();
  const watch = new ServiceWatch(null, locks, events);
  watch.begin();
  return { ask, locks, events, watch };
}

describe('ServiceWatch', () => {
  it('asks the masters at most once a second, however many pages want to know', async () => {
    const { ask, watch } = watching();
    await Promise.all([watch.status(0), watch.status(0), watch.status(999)]);
    expect(ask).toHaveBeenCalledTimes(1);
    expect(await watch.status(1_000)).toMatchObject({ canVote: true });
    expect(ask).toHaveBeenCalledTimes(2);
  });

  it('knows what is held and waited for, and forgets what has ended in any way', async () => {
    const { locks, watch } = watching();
    const lock = await locks.acquire(['b', 'a'], '10s');
    const waiting = locks.acquire('a', { ttl: '10s', wait: '1m' });
    expect(watch.own.held).toMatchObject({ count: 1, locks: [{ resources: ['b', 'a'] }] });
    expect(watch.own.waiting).toMatchObject({ count: 1, locks: [{ resources: ['a'] }] });
    expect(await locks.tryAcquire('a', '10s')).toBeNull();
    expect([watch.own.held.count, watch.own.waiting.count]).toEqual([1, 1]);
    await lock.release();
    await (await waiting).release();
    expect(watch.own).toEqual({ held: { count: 0, locks: [] }, waiting: { count: 0, locks: [] } });
  });

  it('knows what was held and waited for before the watch began', async () => {
    const clock = new ManualClock(1_000);
    const locks = memoryLockService({ clock });
    const lock = await locks.acquire('a', '10s');
    await clock.advance(500);
    const waiting = locks.acquire('a', { ttl: '10s', wait: '1m' });
    const watch = new ServiceWatch(null, locks, new EventLog());
    watch.begin();
    expect(watch.own).toEqual({
      held: { count: 1, locks: [{ resources: ['a'], since: 1_000 }] },
      waiting: { count: 1, locks: [{ resources: ['a'], since: 1_500 }] },
    });
    await lock.release();
    await (await waiting).release();
    expect(watch.own).toMatchObject({ held: { count: 0 }, waiting: { count: 0 } });
  });

  it('lists a hundred locks and counts the others', async () => {
    const { locks, watch } = watching();
    const held = await Promise.all(Array.from({ length: 101 }, (_, i) => locks.acquire(`r${i}`, '10s')));
    expect([watch.own.held.count, watch.own.held.locks.length]).toEqual([101, 100]);
    await Promise.all(held.map((lock) => lock.release()));
    expect(watch.own.held.count).toBe(0);
  });
});

it('EventLog keeps the latest two hundred events, and gives those after a number', () => {
  const { events } = watching();
  for (let i = 0; i < 250; i++) events.add(null, 'good', `event ${i}`);
  const all = events.after(0);
  expect([all.length, all[0]!.text]).toEqual([200, 'event 50']);
  expect(events.after(248).map(({ text }) => text)).toEqual(['event 248', 'event 249']);
});

const NOON = Date.UTC(2026, 10, 22, 12);

function overviewOf(more: Partial<JobOverview> = {}): JobOverview {
  return {
    ...{ name: 'report', service: undefined, schedule: '0 12 * * *', timeZone: 'Europe/Berlin' },
    ...{ next: new Date(NOON), current: undefined, runs: [], isSettled: true, lastSkip: undefined, lost: undefined },
    ...more,
  };
}

it('The jobs of the dashboard have their last five runs, with times in milliseconds', async () => {
  const run = {
    ...{ scheduledFor: new Date(NOON), startedAt: new Date(NOON + 5), endedAt: new Date(NOON + 25) },
    ...({ instance: 'web-1:1', attempt: 2, outcome: 'failed', error: 'no paper' } as const),
  };
  const { startedAt, ...current } = { ...run, scheduledFor: new Date(NOON + 60_000), attempt: 1 };
  const overviews = [
    overviewOf({
      current: { startedAt, scheduledFor: current.scheduledFor, instance: 'web-2:1', attempt: 1 },
      runs: Array.from({ length: 8 }, () => run),
      lastSkip: { scheduledFor: new Date(NOON), at: new Date(NOON), reason: 'finished' },
    }),
    overviewOf({ name: 'sync', service: 'billing', schedule: 300_000, timeZone: undefined, problem: 'no quorum' }),
  ];
  const [report, sync] = await watchJobs({ overview: () => Promise.resolve(overviews) })();
  expect(report).toEqual({
    ...{ name: 'report', service: null, schedule: '0 12 * * * (Europe/Berlin)', next: NOON, isSettled: true },
    current: { scheduledFor: NOON + 60_000, outcome: 'started', instance: 'web-2:1', attempt: 1 },
    runs: Array.from({ length: 5 }, () => ({
      ...{ scheduledFor: NOON, outcome: 'failed', instance: 'web-1:1', attempt: 2, taken: 20, error: 'no paper' },
    })),
    lastSkip: { scheduledFor: NOON, reason: 'another instance has run it' },
  });
  expect(sync).toMatchObject({ name: 'sync', service: 'billing', schedule: '5.0 min', problem: 'no quorum' });
});
