// `npm run torture:leader`: three instances that campaign for one election, on three real servers. One fault at a time: the
// leader is killed, stopped, cut off from its masters or asked to resign, or all instances are deployed anew. There must
// never be two leaders, terms must grow, and the events of each instance must be in order.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SoakEvent, Task } from '../../soak/trace.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { Child, Fleet, type Outcome } from '../child.js';
import { Cluster } from '../cluster.js';
import { Dice } from '../dice.js';
import { now } from '../trace.js';
import { judge } from './verdict.mjs';

const INSTANCE = join(import.meta.dirname, '../instance.js');
const NAMES = ['a', 'b', 'c'];
const TTL = 1_000;
/** Between two faults, in milliseconds. */
const CALM = [500, 2_500] as const;
/** How long the leader is stopped or cut off, in milliseconds. */
const AWAY = [TTL / 2, 3 * TTL] as const;

/** An instance, and its ways to the masters. */
class Candidate extends Child<SoakEvent> {
  links: readonly TcpProxy[] = [];

  /** Everything is lost, and no connection is closed. What was lost is missing afterwards, so only new connections help. */
  async cutOff(links: readonly TcpProxy[], milliseconds: number): Promise<void> {
    this.discard(links, true);
    await sleep(milliseconds);
    this.discard(links, false);
    for (const link of links) link.reset();
  }

  private discard(links: readonly TcpProxy[], isLost: boolean): void {
    for (const { requests, replies } of links) requests.blackHole = replies.blackHole = isLost;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Promise.all(this.links.map((link) => link.close()));
  }
}

export async function main({
  seconds,
  folder,
}: {
  readonly seconds: number;
  readonly folder: string;
}): Promise<Outcome> {
  await using cluster = await Cluster.start(3);
  const dice = new Dice(Date.now());
  const counts = new Map<string, number>();
  let leader: Candidate | undefined;
  await using fleet = new Fleet(async (name) => {
    const own = await Promise.all(cluster.nodes.map(({ server }) => TcpProxy.to(server.port)));
    const task = { duty: 'leader', masters: own.map(({ url }) => url), ttl: TTL } satisfies Partial<Task>;
    const candidate = new Candidate(name, { program: INSTANCE, folder, task });
    candidate.links = own;
    candidate.process.on('message', ({ elected }: { elected?: true }) => elected && (leader = candidate));
    return candidate;
  });

  const FAULTS: Record<string, (leader: Candidate, part: string) => unknown> = {
    'leader killed': (_, part) => fleet.replace(part),
    'leader stopped': (it) => it.stop(dice.between(...AWAY)),
    'leader cut off from all masters': (it) => it.cutOff(it.links, dice.between(...AWAY)),
    'leader cut off from one master': (it) => it.cutOff(it.links.slice(0, 1), dice.between(...AWAY)),
    'leader cut off from two masters': (it) => it.cutOff(it.links.slice(1), dice.between(...AWAY)),
    'leader asked to resign': (it) => it.process.send('resign'),
    'rolling deployment': async () => {
      for (const [part, old] of [...fleet.inService]) {
        await fleet.start(part);
        await old.end();
      }
    },
  };

  /** Each kind once in random order, and then again. */
  const breakUntil = async (end: number): Promise<void> => {
    for (;;) {
      for (const kind of dice.shuffle(Object.keys(FAULTS))) {
        await sleep(dice.between(...CALM));
        if (now() >= end) return;
        const found = [...fleet.inService].find(([, candidate]) => candidate === leader);
        if (!found) continue;
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
        await FAULTS[kind]?.(found[1], found[0]);
      }
    }
  };

  console.log(`Three instances on three servers campaign, for ${seconds} s`);
  await Promise.all(NAMES.map((part) => fleet.start(part)));
  // New masters vote after 2.5 s.
  while (leader === undefined) await sleep(100);
  await breakUntil(now() + seconds * 1_000);
  // Longer than a crashed leader blocks the others, and a poll.
  await sleep(TTL + 4_500);
  const lines = fleet.all.flatMap(({ record: { name, events } }) =>
    events.flatMap((event) => (event.kind === 'election' ? [{ ...event.line, instance: name }] : [])),
  );
  const { table, problems } = judge({ lines, kills: fleet.kills });
  const leads = lines.flatMap((line) => (line.event === 'leads' ? [line.after] : []));
  const isLed = now() - Math.max(...leads) < 1_000;
  console.log(`\n${[...counts].map(([kind, count]) => `${kind}: ${count}`).join('\n')}`);
  return { text: table, problems: isLed ? problems : [...problems, 'no instance leads at the end'] };
}
