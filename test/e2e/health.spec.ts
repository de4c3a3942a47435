import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { RedlockHealthIndicator, RedlockHealthModule } from 'nestjs-redlock/terminus';
import { memoryMasters } from 'nestjs-redlock/testing';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { listen } from './support/applications.js';

jest.setTimeout(60_000);

@Controller()
class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(RedlockHealthIndicator) private readonly redlock: RedlockHealthIndicator,
  ) {}

  @Get('health')
  @HealthCheck()
  check() {
    return this.health.check([() => this.redlock.isHealthy()]);
  }

  @Get('health/:service')
  @HealthCheck()
  checkBilling() {
    return this.health.check([() => this.redlock.isHealthy('locks of billing', { service: 'billing' })]);
  }
}

const services = [RedlockHealthModule, TerminusModule.forRoot({ errorLogStyle: 'json' })];

async function start(...options: (RedlockModuleOptions & { name?: string })[]) {
  const modules = options.map((each) => RedlockModule.forRoot(each));
  return listen({ imports: [...modules, ...services], controllers: [HealthController] });
}

interface Health {
  readonly status: number;
  /** The details of the indicators, whether they are up or down. */
  readonly details: Record<string, { status: string; quorum: number; masters: Record<string, unknown>[] }>;
}

async function healthOf(url: string, path = '/health'): Promise<Health> {
  const response = await fetch(url + path);
  const { details } = (await response.json()) as Health;
  return { status: response.status, details };
}

async function statesOf(url: string): Promise<unknown[]> {
  const { details } = await healthOf(url);
  return details.redlock!.masters.map(({ state }) => state);
}

/** Wide enough for a busy machine, so that only a hung master counts as hung. */
const PATIENT = { masterTimeout: '2s', restartGuard: false } as const;

describe('The health check on real servers', () => {
  const masters = sharedMasters(3);

  it('is up, with the latency and the version of each master', async () => {
    const { url } = await start({ ...PATIENT, masters: [...masters.urls] });
    const { status, details } = await healthOf(url);
    expect(status).toBe(200);
    expect(details).toEqual({
      redlock: {
        status: 'up',
        quorum: 2,
        masters: masters.servers.map(({ port }) => ({
          master: `127.0.0.1:${port}`,
          state: 'voting',
          latency: expect.any(Number),
          version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
        })),
      },
    });
    for (const { latency } of details.redlock!.masters) {
      expect(latency).toBeGreaterThan(0);
      expect(latency).toBeLessThanOrEqual(2_000);
    }
  });

  it('stays up and names a master that is down, and goes down with a majority of them', async () => {
    const { url } = await start({ ...PATIENT, masters: [...masters.urls] });
    const [first, second] = masters.servers;

    await first!.kill();
    const degraded = await healthOf(url);
    expect(degraded.status).toBe(200);
    expect(degraded.details.redlock).toMatchObject({
      status: 'up',
      masters: [{ state: 'down', reason: expect.any(String) }, { state: 'voting' }, { state: 'voting' }],
    });
    expect(degraded.details.redlock!.masters[0]).not.toHaveProperty('latency');

    await second!.kill();
    const down = await healthOf(url);
    expect(down.status).toBe(503);
    expect(down.details.redlock).toMatchObject({
      status: 'down',
      quorum: 2,
      masters: [{ state: 'down' }, { state: 'down' }, { state: 'voting', latency: expect.any(Number) }],
    });

    await first!.restart();
    await eventually(async () => (await healthOf(url)).status === 200);
    await expect(statesOf(url)).resolves.toEqual(['voting', 'down', 'voting']);
  });

  it.each([
    ['OOM', ['CONFIG', 'SET', 'maxmemory', '1']],
    ['NOREPLICAS', ['CONFIG', 'SET', 'min-replicas-to-write', '1']],
    ['READONLY', ['REPLICAOF', '127.0.0.1', '1']],
    ['NOPERM', ['ACL', 'SETUSER', 'default', '-set']],
  ])('is down when a majority of masters refuses every write: %s', async (code, [first = '', ...args]) => {
    const { url } = await start({ ...PATIENT, masters: [...masters.urls] });
    for (const { port } of masters.servers.slice(0, 2)) await command(port, first, ...args);
    const { status, details } = await healthOf(url);
    expect(status).toBe(503);
    const refused = { state: 'refused', reason: expect.stringMatching(`^${code} `) };
    expect(details.redlock!.masters).toMatchObject([refused, refused, { state: 'voting' }]);
  });

  it('is down while a majority waits, with the reason and the remaining time', async () => {
    const { url } = await start({ masters: [...masters.urls], masterTimeout: '2s' });
    const { status, details } = await healthOf(url);
    expect(status).toBe(503);
    for (const master of details.redlock!.masters) {
      expect(master).toMatchObject({
        state: 'quarantined',
        reason: expect.stringMatching(/^waits \d+\.\d s because it is new$/),
      });
      expect(master.remaining).toBeGreaterThan(0);
      // The ttl by default.
      expect(master.remaining).toBeLessThanOrEqual(10_000);
    }
  });
});

describe('The health check of several lock services', () => {
  it('checks the selected service', async () => {
    const [orders, billing] = [memoryMasters(3), memoryMasters(3)];
    const { url } = await start({ masters: orders }, { masters: billing, name: 'billing' });
    for (const master of billing.slice(1)) master.takeDown();
    await expect(healthOf(url)).resolves.toMatchObject({ status: 200, details: { redlock: { status: 'up' } } });
    await expect(healthOf(url, '/health/billing')).resolves.toMatchObject({
      status: 503,
      details: {
        'locks of billing': {
          status: 'down',
          masters: [{ state: 'voting' }, { state: 'down', reason: 'taken down' }, { state: 'down' }],
        },
      },
    });
  });

  it('names the missing module if no service has that name', async () => {
    const { app } = await start({ masters: memoryMasters(1) });
    const indicator = app.get(RedlockHealthIndicator, { strict: false });
    await expect(indicator.isHealthy('locks', { service: 'billing' })).rejects.toThrow("forRoot({ name: 'billing'");
  });
});
