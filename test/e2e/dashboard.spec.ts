import { once } from 'node:events';
import { request as requestOf } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
  Injectable,
  type INestApplication,
  Module,
  type ModuleMetadata,
  UnauthorizedException,
  VersioningType,
} from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockService, RedlockModule, getLockServiceToken } from 'nestjs-redlock';
import { RedlockDashboardModule, type RedlockDashboardOptions } from 'nestjs-redlock/dashboard';
import { Leader, type Leadership, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { memoryMasters, RedlockTestingModule } from 'nestjs-redlock/testing';
import type { InspectionView, StateView } from '../../lib/dashboard/dashboard.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { ADAPTERS } from './support/adapters.js';
import { closeLater, listen, logs } from './support/applications.js';
import { throwing } from '../support/throwing.js';

jest.setTimeout(60_000);

/** Admits requests with this header. */
const TICKET = { 'x-user': 'anna' };
/** The page sends this header with each request. */
const PAGE = { ...TICKET, 'x-redlock-dashboard': 'page' };
const JSON_ACTION = { ...PAGE, 'content-type': 'application/json' };

@Injectable()
class Users {
  readonly admitted = ['anna'];
}

@Module({ providers: [Users], exports: [Users] })
class UsersModule {}

@Injectable()
class UserGuard implements CanActivate {
  constructor(private readonly users: Users) {}

  canActivate(context: ExecutionContext): boolean {
    return this.users.admitted.includes(userOf(context.switchToHttp().getRequest<object>()));
  }
}
Reflect.defineMetadata('design:paramtypes', [Users], UserGuard);

function userOf(request: object): string {
  const { headers } = request as { readonly headers: Readonly<Record<string, string>> };
  return headers['x-user'] ?? '';
}

const GUARDED: RedlockDashboardOptions = { path: 'admin/locks', guards: [UserGuard], imports: [UsersModule] };
const ACTING: RedlockDashboardOptions = { ...GUARDED, actions: true, actor: userOf };
/** Wide enough for a busy machine. */
const PATIENT = { masterTimeout: '2s', restartGuard: false, drainTimeout: 0 } as const;

async function stateOf(url: string, query = ''): Promise<StateView> {
  const response = await fetch(`${url}/api/state?${query}`, { headers: PAGE });
  expect(response.status).toBe(200);
  return (await response.json()) as StateView;
}

async function inspectionOf(url: string, resource: string, more: Record<string, string> = {}): Promise<InspectionView> {
  const query = new URLSearchParams({ resource, ...more });
  const response = await fetch(`${url}/api/inspect?${query.toString()}`, { headers: PAGE });
  expect(response.status).toBe(200);
  return (await response.json()) as InspectionView;
}

/** What the page sends to release the lock on a resource by force. */
async function forced(url: string, resource: string): Promise<object> {
  const { ticket } = await inspectionOf(url, resource);
  return { resource, ticket, confirm: resource };
}

async function release(url: string, body: object, headers: Record<string, string> = JSON_ACTION): Promise<Response> {
  return fetch(`${url}/api/release`, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Unlike `fetch`, this function can send any header. */
async function answerTo(method: string, url: string, headers: Record<string, string>, sent = '') {
  const length = method === 'POST' && { 'content-length': String(Buffer.byteLength(sent)) };
  const request = requestOf(url, { method, headers: { ...headers, ...length } }).end(sent);
  const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream & { statusCode: number }];
  return { status: response.statusCode, body: await text(response) };
}

async function statusOf(...request: Parameters<typeof answerTo>): Promise<number> {
  return (await answerTo(...request)).status;
}

type Masters = readonly string[] | ReturnType<typeof memoryMasters>;

const onMasters = (masters: Masters): DynamicModule => RedlockModule.forRoot({ masters: [...masters], ...PATIENT });

/** What an application has beside its lock services and its dashboard. */
interface More extends ModuleMetadata {
  readonly adapter?: AbstractHttpAdapter | undefined;
  readonly prepare?: (app: INestApplication) => unknown;
}

/** An application with these lock services and this dashboard, and the address of the dashboard. */
async function startOn(redlock: readonly DynamicModule[], { adapter, prepare, imports = [], ...more }: More = {}) {
  const { app, url } = await listen({ ...more, imports: [...redlock, ...imports] }, adapter, prepare);
  return { app, url: `${url}/admin/locks`, locks: app.get(LockService) };
}

const DEAD = RedlockModule.forRoot(['redis://127.0.0.1:1']);

describe.each(ADAPTERS)('The dashboard on $platform', ({ adapter }) => {
  const start = (options: RedlockDashboardOptions, masters: Masters = memoryMasters(3), more: More = {}) =>
    startOn([onMasters(masters), RedlockDashboardModule.forRoot(options)], { adapter: adapter(), ...more });

  it('leads from its path to a page whose files exist, with a strict content security policy', async () => {
    const { url } = await start(GUARDED);
    const page = await fetch(url, { headers: TICKET });
    expect(page.url).toBe(`${url}/page/index.html`);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = page.headers.get('content-security-policy');
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'/,
    );
    expect(policy).not.toContain('unsafe');
    const html = await page.text();
    expect(html).not.toMatch(/<style|style=|\son\w+=|https?:/);
    const names = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const file = await fetch(new URL(name, page.url), { headers: TICKET });
      expect([name, file.status]).toEqual([name, 200]);
      expect(file.headers.get('x-content-type-options')).toBe('nosniff');
    }
    expect(await statusOf('GET', `${url}/page/dashboard.ts`, TICKET)).toBe(404);
  });

  describe('with real masters', () => {
    const masters = sharedMasters(3);

    it('shows real masters, the locks that this instance holds and waits for, and what happened', async () => {
      const { url, locks } = await start(GUARDED, masters.urls);
      const lock = await locks.acquire(['a', 'b'], '30s');
      const waiting = locks.acquire('a', { ttl: '30s', wait: '1m' });
      const { services, actions, events } = await stateOf(url);
      expect(actions).toBe(false);
      expect(services).toMatchObject([
        {
          ...{ name: null, isOff: false, canVote: true, reason: '3 of 3 masters vote.', quorum: 2 },
          masters: masters.servers.map(({ port }) => ({
            ...{ master: `127.0.0.1:${port}`, state: 'voting', latency: expect.any(Number) },
            version: expect.stringMatching(/^\d+\.\d+/),
          })),
          held: { count: 1, locks: [{ resources: ['a', 'b'] }] },
          waiting: { count: 1, locks: [{ resources: ['a'] }] },
        },
      ]);
      expect(events).toMatchObject([{ id: 1, kind: 'good', service: null, text: expect.stringContaining('3 of 3') }]);

      await lock.release();
      await (await waiting).release();
      const { services: later } = await stateOf(url);
      expect(later).toMatchObject([{ held: { count: 0 }, waiting: { count: 0 } }]);
    });

    it('shows why no lock can be taken, and records that the quorum was lost and restored', async () => {
      const { url } = await start(GUARDED, masters.urls);
      const { log } = await stateOf(url);
      await Promise.all(masters.servers.slice(1).map((server) => server.kill()));
      await eventually(async () => !(await stateOf(url)).services[0]!.canVote);
      const [service] = (await stateOf(url)).services;
      expect(service!.reason).toMatch(/^1 of 3 masters vote, 2 are needed. 127.0.0.1:\d+ is down: .*ECONNREFUSED/);
      await eventually(async () => (await stateOf(url)).events.some(({ kind }) => kind === 'bad'));
      const { events } = await stateOf(url, `log=${log}&after=1`);
      expect(events[0]!.id).toBe(2);
      const said: unknown = expect.stringMatching(/^no lock can be taken: 1 of 3 masters vote \(/);
      expect(events).toContainEqual(expect.objectContaining({ kind: 'bad', text: said }));

      await masters.servers[1]!.restart();
      await eventually(async () => (await stateOf(url)).events.at(-1)!.text.startsWith('locks can be taken again'));
    });

    it('inspects any resource, without a ticket while it is read-only', async () => {
      const { url, locks } = await start(GUARDED, masters.urls);
      const lock = await locks.acquire('a b/ü', '30s');
      const held = await inspectionOf(url, 'a b/ü');
      const holder = { instance: locks.status().instance, since: expect.any(Number) };
      const remaining: unknown = expect.any(Number);
      expect(held).toMatchObject({ resource: 'a b/ü', state: 'held', remaining, holder, waiting: 0 });
      expect(held.masters).toHaveLength(3);
      expect(held).not.toHaveProperty('ticket');
      await lock.release();
      expect(await inspectionOf(url, 'a b/ü')).toMatchObject({ state: 'free' });
      expect(await statusOf('GET', `${url}/api/inspect?resource=`, PAGE)).toBe(400);
      expect(await statusOf('GET', `${url}/api/inspect?resource=a&service=none`, PAGE)).toBe(404);
    });

    it('shows the term of a leader, and that this instance leads', async () => {
      class Outbox {
        @Leader('outbox')
        async relay({ ended }: Leadership): Promise<void> {
          await ended;
        }
      }
      const { url } = await start(GUARDED, masters.urls, { imports: [RedlockLeaderModule], providers: [Outbox] });
      await eventually(async () => typeof (await inspectionOf(url, 'leader:outbox')).term === 'number');
      const { events } = await stateOf(url);
      expect(events.map(({ text }) => text)).toContainEqual(expect.stringMatching(/^this instance leads "outbox" in/));
      expect(await inspectionOf(url, 'other')).not.toHaveProperty('term');
    });

    it('releases a lock by force, so that its holder cannot extend it, and writes an audit line', async () => {
      const { url, locks } = await start(ACTING, masters.urls);
      const lock = await locks.acquire('order:1', '30s');
      const { ticket } = await inspectionOf(url, 'order:1');
      expect(ticket).toMatch(/^[0-9a-f]{64}$/);
      const response = await release(url, { resource: 'order:1', ticket, confirm: 'order:1' });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ released: true, by: 'anna', resource: 'order:1', unreached: [] });
      const audits = logs.filter((line) => line.includes('audit: '));
      expect(audits).toEqual([
        expect.stringMatching(
          /^log audit: \d{4}-\S+Z "anna" released "order:1" \(revoked, \d+\.\d s left\) on 3 of 3 masters \(127/,
        ),
      ]);
      await expect(lock.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
      const after = await inspectionOf(url, 'order:1');
      expect(after).toMatchObject({ state: 'held', revoked: true });
      expect(after).not.toHaveProperty('ticket');
      const { events } = await stateOf(url);
      expect(events.map(({ kind }) => kind)).toEqual(['good', 'action', 'lost']);
    });

    it('releases a permit by force, and leaves the other permits and the lock of the name alone', async () => {
      const { url, locks } = await start(ACTING, masters.urls);
      const lock = await locks.acquire('stripe', '30s');
      const [one, other] = [
        await locks.acquire('stripe', { permits: 2, ttl: '30s' }),
        await locks.acquire('stripe', { permits: 2, ttl: '30s' }),
      ];
      const [slot, title] = [String(one.slot), `stripe #${one.slot}`];
      const { ticket } = await inspectionOf(url, 'stripe', { slot });
      expect((await release(url, [])).status).toBe(400);
      expect((await release(url, { resource: 'stripe', slot, ticket, confirm: 'stripe' })).status).toBe(400);
      const response = await release(url, { resource: 'stripe', slot, ticket, confirm: title });
      expect(await response.json()).toMatchObject({ released: true, by: 'anna', resource: 'stripe', slot: one.slot });
      expect(logs.filter((line) => line.includes('audit: '))).toEqual([
        expect.stringContaining(`"anna" did not release "stripe" #${slot}: its name was not typed as confirmation`),
        expect.stringContaining(`"anna" released "stripe" #${slot} (revoked, `),
      ]);
      await expect(one.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await expect(other.extend()).resolves.toBeUndefined();
      await expect(lock.extend()).resolves.toBeUndefined();
      expect(await inspectionOf(url, title)).toMatchObject({ slot: one.slot, revoked: true });
    });
  });

  it('uses relative addresses only, below a global prefix and in an application with versions', async () => {
    const prepare = (created: INestApplication): void => {
      created.setGlobalPrefix('internal');
      created.enableVersioning({ type: VersioningType.URI });
    };
    const { app } = await start(GUARDED, memoryMasters(1), { prepare });
    const host = (await app.getUrl()).replace('[::1]', '127.0.0.1');
    const answer = await fetch(`${host}/internal/admin/locks?from=mail`, { headers: TICKET, redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'locks/page/index.html']);
    expect((await stateOf(`${host}/internal/admin/locks`)).services).toHaveLength(1);
  });

  it('protects the page, its files, the data and the actions by the guard', async () => {
    const { url } = await start(ACTING);
    for (const path of ['', '/page/index.html', '/page/main.js', '/api/state', '/api/inspect?resource=a']) {
      expect([path, await statusOf('GET', url + path, {})]).toEqual([path, 403]);
    }
    const headers = { ...JSON_ACTION, 'x-user': 'mallory' };
    expect((await release(url, { resource: 'a', ticket: 'b', confirm: 'a' }, headers)).status).toBe(403);
  });

  it('shows which own locks are shared or permits, and by how many a lock is shared', async () => {
    const { url, locks } = await start(GUARDED);
    await using _shared = await locks.acquire('prices', { mode: 'shared' });
    await using permit = await locks.acquire('stripe', { permits: 2 });
    const { services } = await stateOf(url);
    expect(services[0]?.held.locks).toEqual([
      { resources: ['prices'], since: expect.any(Number), mode: 'shared' },
      { resources: ['stripe'], since: expect.any(Number), slot: permit.slot },
    ]);
    expect(await inspectionOf(url, 'prices')).toMatchObject({ state: 'held', sharedBy: 1 });
  });

  it('shows which permits of a name are taken, and not that its lock is free', async () => {
    const { url, locks } = await start(GUARDED);
    const permits = [0, 1].map(() => locks.acquire('stripe', { permits: 2 }));
    const held = await Promise.all(permits);
    const { instance } = locks.status();
    const waiting = locks.acquire('stripe', { permits: 2, wait: '1m' });
    const expected = held.map(({ slot }) => ({ slot, state: 'held', holder: { instance } }));
    expected.sort((one, other) => one.slot! - other.slot!);
    const inspection = await inspectionOf(url, 'stripe');
    expect(inspection).toMatchObject({ state: 'free', permits: { waiting: 0, slots: expected } });
    expect(inspection).not.toHaveProperty('slot');
    const { services } = await stateOf(url);
    expect(services[0]?.waiting.locks).toEqual([{ resources: ['stripe'], since: expect.any(Number), permits: 2 }]);

    const [slot] = held.map((lock) => lock.slot);
    const permit = { resource: 'stripe', slot, state: 'held', holder: { instance } };
    expect(await inspectionOf(url, 'stripe', { slot: String(slot) })).toMatchObject(permit);
    // As a user types it, and as the page shows it.
    expect(await inspectionOf(url, `stripe #${slot}`)).toMatchObject(permit);
    expect(await inspectionOf(url, 'stripe #7')).toMatchObject({ resource: 'stripe #7', state: 'free' });
    expect(await inspectionOf(url, 'other')).not.toHaveProperty('permits');
    await using _lock = await locks.acquire(`stripe #${slot}`, '30s');
    const named = await inspectionOf(url, `stripe #${slot}`);
    expect(named).toMatchObject({ resource: `stripe #${slot}`, state: 'held' });
    for (const wrong of ['-1', '1000', 'x']) {
      expect(await statusOf('GET', `${url}/api/inspect?resource=a&slot=${wrong}`, PAGE)).toBe(400);
    }
    await Promise.all(held.map((lock) => lock.release()));
    await (await waiting).release();
    expect(await inspectionOf(url, 'stripe')).not.toHaveProperty('permits');
  });

  it('is read-only unless actions are switched on', async () => {
    const { url, locks } = await start(GUARDED);
    const lock = await locks.acquire('a', '30s');
    expect((await release(url, { resource: 'a', ticket: 'x', confirm: 'a' })).status).toBe(403);
    await lock.extend();
    expect(lock.isHeld).toBe(true);
  });

  it('leaves the lock of a later holder alone', async () => {
    const { url, locks } = await start(ACTING);
    const first = await locks.acquire('a', '30s');
    const body = await forced(url, 'a');
    await first.release();
    const second = await locks.acquire('a', '30s');
    const refused = await release(url, body);
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ message: '"a" was not released: another holder has it now' });
    await second.extend();
    await second.release();
    expect((await release(url, body)).status).toBe(409);
    expect(logs.filter((line) => line.includes('"anna" did not release "a"'))).toHaveLength(2);
  });

  it('refuses actions that another site could send', async () => {
    const { url, locks } = await start(ACTING);
    const lock = await locks.acquire('a', '30s');
    const body = JSON.stringify(await forced(url, 'a'));
    const { host } = new URL(url);
    const without = Object.fromEntries(Object.entries(JSON_ACTION).filter(([name]) => name !== 'x-redlock-dashboard'));
    for (const [headers, status] of [
      [without, 403],
      [{ ...JSON_ACTION, 'sec-fetch-site': 'cross-site' }, 403],
      [{ ...JSON_ACTION, 'sec-fetch-site': 'same-site', origin: `http://${host}` }, 403],
      [{ ...JSON_ACTION, 'sec-fetch-site': 'none' }, 403],
      [{ ...JSON_ACTION, origin: 'https://elsewhere.example' }, 403],
      [{ ...JSON_ACTION, origin: 'http://elsewhere.example', 'x-forwarded-host': 'elsewhere.example' }, 403],
      [{ ...JSON_ACTION, origin: 'null' }, 403],
      [{ ...JSON_ACTION, 'content-type': 'text/plain' }, 415],
    ] as const) {
      expect([headers, await statusOf('POST', `${url}/api/release`, headers, body)]).toEqual([headers, status]);
    }
    const elsewhere = { ...PAGE, 'sec-fetch-site': 'cross-site' };
    expect(await statusOf('GET', `${url}/api/state`, elsewhere)).toBe(403);
    expect(await statusOf('GET', `${url}/page/index.html`, elsewhere)).toBe(200);
    // An image of another site sends no header of the page.
    for (const path of ['state', 'inspect?resource=a']) {
      expect([path, await statusOf('GET', `${url}/api/${path}`, TICKET)]).toEqual([path, 403]);
    }
    await lock.extend();
  });

  it('knows the origin of its page behind a proxy that changes Host by the option origins', async () => {
    const { url, locks } = await start({ ...ACTING, origins: ['https://ops.example'] });
    await locks.acquire('a', '30s');
    const body = await forced(url, 'a');
    expect((await release(url, body, { ...JSON_ACTION, origin: 'https://ops.example:444' })).status).toBe(403);
    expect((await release(url, body, { ...JSON_ACTION, origin: 'https://ops.example' })).status).toBe(200);
  });

  it.each([
    ['without a guard, under another host name', { guards: 'none' }, 'evil.example'],
    ['with a guard, under a name that is not in the option hosts', { hosts: ['ops.example'] }, 'x.ops.example'],
  ] as const)('is neither shown nor acts %s', async (_, more, host) => {
    const { url, locks } = await start({ ...ACTING, ...more });
    const lock = await locks.acquire('a', '30s');
    const action = JSON.stringify(await forced(url, 'a'));
    const name = `${host}:3000`;
    const rebound = { ...JSON_ACTION, host: name, origin: `http://${name}`, 'x-forwarded-host': 'localhost' };
    for (const path of ['', '/page/index.html', '/page/none', '/api/state', '/api/inspect?resource=a']) {
      const { status, body } = await answerTo('GET', url + path, rebound);
      expect([path, status]).toEqual([path, 403]);
      expect(JSON.parse(body)).toMatchObject({
        message: expect.stringContaining('option hosts of RedlockDashboardModule'),
      });
      // A proxy passes on which host it was asked for.
      const proxied = { ...rebound, host: '10.0.0.1', 'x-forwarded-host': `${host}:3000` };
      expect([path, await statusOf('GET', url + path, proxied)]).toEqual([path, 403]);
    }
    expect(await statusOf('POST', `${url}/api/release`, rebound, action)).toBe(403);
    await lock.extend();
  });

  it('is served without a guard under addresses, localhost and what the option hosts names', async () => {
    const { url } = await start({ path: 'admin/locks', guards: 'none', hosts: ['ops.example'] });
    for (const host of ['127.0.0.1:1', 'localhost', 'ops.example']) {
      for (const path of ['/page/index.html', '/api/state']) {
        expect([host, path, await statusOf('GET', url + path, { ...PAGE, host })]).toEqual([host, path, 200]);
      }
    }
    expect(logs).toContainEqual(expect.stringMatching(/it is served under IP addresses, localhost, ops.example only$/));
  });

  it('is served under any host name with a guard and without the option hosts', async () => {
    const { url } = await start(GUARDED);
    expect(await statusOf('GET', `${url}/api/state`, { ...PAGE, host: 'admin.example' })).toBe(200);
  });

  it('awaits the name of the user, and releases nothing without it', async () => {
    const actors = [
      async () => Promise.reject(new Error('no session')),
      throwing(new Error('no session')),
      async () => Promise.resolve(''),
      async () => Promise.reject(new UnauthorizedException('sign in')),
      async () => Promise.resolve('anna'),
    ];
    const next = actors.values();
    const { url, locks } = await start({ ...ACTING, actor: () => next.next().value!() });
    const lock = await locks.acquire('a', '30s');
    const body = await forced(url, 'a');
    const unnamed = 'the option actor has not named the user of this request: nothing was released';
    for (const [status, message] of [
      ...Array<readonly [number, string]>(3).fill([403, unnamed]),
      [401, 'sign in'] as const,
    ]) {
      const refused = await release(url, body);
      expect([refused.status, await refused.json()]).toMatchObject([status, { message }]);
    }
    const failure = 'error the option actor failed, so nothing was released: Error: no session';
    expect(logs.filter((line) => line.startsWith('error'))).toEqual([failure, failure]);
    await lock.extend();
    expect(await (await release(url, body)).json()).toMatchObject({ released: true, by: 'anna' });
  });

  it('shows several lock services', async () => {
    const billing = RedlockModule.forRoot({ masters: memoryMasters(1), name: 'billing', drainTimeout: 0 });
    const { app, url } = await start(GUARDED, memoryMasters(1), { imports: [billing] });
    await app.get<LockService>(getLockServiceToken('billing')).acquire('invoice', '30s');
    const { services } = await stateOf(url);
    expect(services.map(({ name, held }) => [name, held.count])).toEqual([
      [null, 0],
      ['billing', 1],
    ]);
    expect(await inspectionOf(url, 'invoice', { service: 'billing' })).toMatchObject({ state: 'held' });
    expect(await inspectionOf(url, 'invoice')).toMatchObject({ state: 'free' });
  });

  it('does not delay the end of the application while a page is open', async () => {
    const { app, url } = await start(GUARDED);
    await stateOf(url);
    await app.close();
    await expect(fetch(`${url}/api/state`)).rejects.toThrow('fetch failed');
  });
});

describe('The dashboard', () => {
  it('calls a lock released, and shows it as such, once no quorum is left that could extend it', async () => {
    const masters = memoryMasters(3);
    const { url, locks } = await startOn([onMasters(masters), RedlockDashboardModule.forRoot(ACTING)]);
    await locks.acquire('a', '30s');
    for (const master of masters.slice(1)) master.takeDown();
    const tried = await release(url, await forced(url, 'a'));
    expect(await tried.json()).toMatchObject({ released: false, taken: ['memory-1'] });
    expect(await inspectionOf(url, 'a')).toMatchObject({ revoked: false });
    masters[1]!.bringUp();
    const released = await release(url, await forced(url, 'a'));
    expect(await released.json()).toMatchObject({ released: true, unreached: ['memory-3'] });
    masters[2]!.bringUp();
    expect(await inspectionOf(url, 'a')).toMatchObject({ state: 'held', revoked: true });
  });

  it('reads its settings from a factory', async () => {
    const dashboard = RedlockDashboardModule.forRootAsync({
      ...GUARDED,
      inject: [Users],
      useFactory: (users: Users) => ({ actions: users.admitted.length > 0 }),
    });
    const { url } = await startOn([onMasters(memoryMasters(1)), dashboard]);
    expect((await stateOf(url)).actions).toBe(true);
  });

  it('shows a service once that replaces the one of the application in a test', async () => {
    const dashboard = RedlockDashboardModule.forRoot(GUARDED);
    const { url, locks } = await startOn([DEAD, dashboard, RedlockTestingModule.forRoot()]);
    const lock = await locks.acquire('a', '30s');
    const { services, events } = await stateOf(url);
    expect(services).toMatchObject([{ name: null, held: { count: 1 } }]);
    expect(events).toHaveLength(1);
    await lock.release();
  });

  it('starts without a service that a test has replaced by an object of its own, and names it', async () => {
    const billing = RedlockModule.forRoot({ name: 'billing', masters: memoryMasters(1) });
    const imports = [DEAD, billing, RedlockDashboardModule.forRoot(GUARDED)];
    const module = await Test.createTestingModule({ imports })
      .overrideProvider(LockService)
      .useValue({ acquire: () => Promise.resolve({}) })
      .compile();
    const app = closeLater(module.createNestApplication());
    await app.listen(0, '127.0.0.1');
    const { services, events } = await stateOf(`${await app.getUrl()}/admin/locks`);
    expect(services.map(({ name }) => name)).toEqual(['billing']);
    expect(events[0]).toMatchObject({
      ...{ kind: 'warning', service: null },
      text: 'the lock service is not shown: the object in its place is not a LockService, as memoryLockService() would be',
    });
  });

  it('says that locking is off, and shows neither masters nor locks then', async () => {
    const off = RedlockModule.forRoot({ enabled: false });
    const { url, locks } = await startOn([off, RedlockDashboardModule.forRoot(GUARDED)]);
    await locks.acquire('a', '30s');
    const { services, events } = await stateOf(url);
    const reason = 'Locking is off by `enabled: false`: everything runs without locks, and excludes nothing.';
    expect(services).toMatchObject([{ isOff: true, canVote: false, reason, masters: [], held: { count: 0 } }]);
    expect(events).toMatchObject([{ kind: 'warning', text: reason }]);
  });

  it('warns at boot if it has no guard of its own', async () => {
    const dashboard = RedlockDashboardModule.forRoot({ guards: 'none' });
    const { url } = await listen({ imports: [onMasters(memoryMasters(1)), dashboard] });
    expect(logs).toContain(
      "warn the dashboard of locks has no guard of its own, because of guards: 'none': " +
        'it is served under IP addresses, localhost only',
    );
    expect(await statusOf('GET', `${url}/redlock/page/index.html`, {})).toBe(200);
  });

  it('refuses to start without a lock service', async () => {
    const dashboard = RedlockDashboardModule.forRoot({ guards: 'none' });
    await expect(listen({ imports: [dashboard] })).rejects.toThrow('import RedlockModule.forRoot(...), too');
  });
});
