import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createConnection, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { languageOf } from '../../lib/redis/connection-problem.js';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { cli, on } from '../support/cli.js';
import { command } from '../support/command.js';
import { contextOf } from '../support/context.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { type Mistake, MISTAKES, OUTAGES, PASSWORD, startMistakes } from '../support/mistakes.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';
import { shared } from '../support/shared.js';

jest.setTimeout(60_000);

const permanent = Object.entries(MISTAKES) as [keyof typeof MISTAKES, string][];
const outages = Object.entries(OUTAGES) as [keyof typeof OUTAGES, RegExp][];

const mistakes = shared(startMistakes);

const versions: [string, (mistake: Mistake) => RedisMasterSource][] = [
  ['6', (mistake) => mistakes().sourceOf(mistake)],
  ['5', (mistake) => new Redis5({ ...(mistakes().sourceOf(mistake) as object), lazyConnect: true })],
];

describe('A server that takes no more connections', () => {
  const FULL =
    'ERR max number of clients reached: raise its `maxclients` (of a managed server: its plan), or let fewer';

  /** Connections that come again when they are refused: more than a server takes. */
  class Crowd {
    private readonly sockets = new Set<Socket>();
    private isThere = true;

    constructor(private readonly port: number) {
      for (let count = 0; count < 25; count++) this.come();
    }

    leave(): void {
      this.isThere = false;
      for (const socket of this.sockets) socket.destroy();
    }

    private come(): void {
      if (!this.isThere) return;
      const socket = createConnection(this.port, '127.0.0.1').on('error', () => undefined);
      this.sockets.add(socket);
      socket.resume().on('close', () => {
        this.sockets.delete(socket);
        setTimeout(() => this.come(), 1);
      });
    }
  }

  const server = shared(() => RedisServer.start({ args: ['--maxclients', '20'] }));
  const crowds: Crowd[] = [];
  const crowd = (): Crowd => crowds[crowds.push(new Crowd(server().port)) - 1]!;
  afterEach(() => {
    for (const one of crowds.splice(0)) one.leave();
  });

  it.each<[string, (port: number) => RedisMasterSource]>([
    ['6', (port) => ({ host: '127.0.0.1', port })],
    ['5', (port) => new Redis5({ host: '127.0.0.1', port, lazyConnect: true })],
  ])('says so itself, to a first connection and to a later one: ioredis %s', async (_, sourceOf) => {
    const problem = { kind: 'unreachable', reason: expect.stringContaining(FULL), sent: false };
    const refusals: string[] = [];
    const context = contextOf({}, { masterRefused: (_name, reason) => refusals.push(reason) });
    const first = crowd();
    const master = redisMaster('masters[0]', sourceOf(server().port), { ...context, languageOf });
    const isFull = (): boolean => master.problem()?.reason.includes(FULL) ?? false;
    try {
      await master.connect();
      await eventually(isFull);
      expect(master.problem()).toEqual(problem);
      first.leave();
      await eventually(() => master.problem() === undefined);

      crowd();
      master.connection.reopen();
      await eventually(isFull);
      expect(master.problem()).toEqual(problem);
      expect(refusals).toEqual([problem.reason, problem.reason]);
    } finally {
      await master.close();
    }
  });

  it('is named by doctor, with what to change', async () => {
    crowd();
    const { stdout } = await cli(['doctor', ...on([server().url]), '--timeout', '3s']);
    expect(stdout.replaceAll(/\s+(?:-> )?/g, ' ')).toContain(FULL.replace('reached:', 'reached'));
  });
});

describe.each(versions)('A connection through ioredis %s', (_, sourceOf) => {
  const open: RedisMaster[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((master) => master.close()));
  });

  async function connect(mistake: Mistake): Promise<RedisMaster> {
    const master = redisMaster('masters[0]', sourceOf(mistake), { ...contextOf(), languageOf });
    open.push(master);
    await master.connect();
    return master;
  }

  it.each(permanent)(
    'with %s: names the problem and what to change, once the first attempt has failed',
    async (mistake, reason) => {
      const master = await connect(mistake);
      expect(master.problem()).toEqual({ kind: 'unreachable', reason, sent: false, isPermanent: true });
      expect(JSON.stringify(master.problem())).not.toContain(PASSWORD);
    },
  );

  it.each(outages)('to %s: names the problem, which waiting could end', async (mistake, reason) => {
    const problem = (await connect(mistake)).problem();
    expect(problem).toEqual({ kind: 'unreachable', reason: expect.stringMatching(reason), sent: false });
  });
});

it('The command doctor names the problem of a connection, and what to change', async () => {
  const args = ['doctor', ...on([mistakes().urlOf('a wrong password')]), '--timeout', '3s'];
  const { status, stdout, stderr } = await cli(args);
  const { port } = mistakes().sourceOf('a wrong password');
  const [what, advice] = MISTAKES['a wrong password'].split(': ');
  expect(stdout).toContain(`problem: 127.0.0.1:${port}: ${what}\n  -> ${advice}`);
  expect(stdout).toContain('1 problem: 0 of 1 master votes, 1 must; no lock can be taken');
  expect(status).toBe(1);
  expect(stdout + stderr).not.toContain(PASSWORD);
});

describe('On a master, an application is listed', () => {
  const masters = sharedMasters(1);

  /** The names of the connections that the server lists, without those that have none. */
  async function namesOnServer(): Promise<string[]> {
    const list = String(await command(masters.servers[0]!.port, 'CLIENT', 'LIST'));
    return [...list.matchAll(/ name=(\S+)/g)].map(([, name = '']) => name).sort();
  }

  it('by the name of its instance, with its connection for notifications', async () => {
    await using holder = await Contender.on(masters.urls, { instance: 'web:1' });
    await using waiter = await Contender.on(masters.urls, { instance: 'web:2' });
    const lock = await holder.acquire('a');
    const waiting = waiter.acquire('a', '10s', { wait: '30s' });
    const expected = ['nestjs-redlock:web:1', 'nestjs-redlock:web:2', 'nestjs-redlock:web:2'];
    await eventually(async () => (await namesOnServer()).join() === expected.join());
    await lock.release();
    await (await waiting).release();
  });

  it.each<[string, (port: number) => object]>([
    ['options', (port) => ({ host: '127.0.0.1', port, connectionName: 'mine' })],
    ['a client', (port) => new Redis({ host: '127.0.0.1', port, connectionName: 'mine', lazyConnect: true })],
  ])('by the name that the user gives in %s', async (_, source) => {
    const master = redisMaster('masters[0]', source(masters.servers[0]!.port), contextOf());
    await master.connect();
    await eventually(async () => (await namesOnServer()).includes('mine'));
    expect(await namesOnServer()).toContain('mine');
    await master.close();
  });
});
