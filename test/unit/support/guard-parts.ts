import type { RedlockOptions } from '../../../lib/core/settings/options.js';
import { resolveSettings } from '../../../lib/core/settings/settings.js';
import { ServerRecord } from '../../../lib/redis/guard/server-record.js';
import { GuardGroup, type Reports } from '../../../lib/redis/guard/guard-group.js';
import { TtlAnnouncements } from '../../../lib/redis/guard/ttl-announcements.js';
import { GuardRounds } from '../../../lib/redis/guard/restart-guard.js';
import { MarkerWriter } from '../../../lib/redis/guard/marker-writer.js';
import { NewMasters } from '../../../lib/redis/guard/new-masters.js';
import { StepJudge } from '../../../lib/redis/guard/step-judge.js';
import { contextOf, type FakeServer, Link } from './guarded-servers.js';
import type { TestClock } from './test-clock.js';

/** The parts of one restart guard, without the rounds and timers that use them: a test calls each part itself. */
export class GuardParts {
  readonly name = 'process';
  readonly guard = { contacted: (): void => undefined, sampled: (): boolean => true };
  readonly group: GuardGroup;
  readonly ttls: TtlAnnouncements;
  readonly writer: MarkerWriter;
  readonly newMasters: NewMasters;
  readonly rounds: GuardRounds;
  private readonly known = new Map<FakeServer, ServerRecord>();

  constructor(
    private readonly clock: TestClock,
    servers: readonly FakeServer[],
    options: RedlockOptions = {},
  ) {
    const group = new GuardGroup(contextOf(clock, this.name, resolveSettings(options, servers.length)));
    this.group = group;
    this.ttls = new TtlAnnouncements(group);
    this.writer = new MarkerWriter(group, this.ttls);
    this.newMasters = new NewMasters(group);
    const steps = new StepJudge(group, this.ttls, () => undefined);
    this.rounds = new GuardRounds({ group, steps, writer: this.writer, newMasters: this.newMasters });
    for (const server of servers) {
      const identity = new ServerRecord(new Link(server, this), () => group.context.settings.ttl);
      group.records.push(identity);
      this.known.set(server, identity);
    }
  }

  identityOf(server: FakeServer): ServerRecord {
    return this.known.get(server)!;
  }

  /** The reports of some servers, or of all, before any part knows of them. */
  reportsOf(servers: Iterable<FakeServer> = this.known.keys()): Reports {
    return new Map([...servers].map((server) => [this.identityOf(server), server.report()]));
  }

  /** Reads some servers, or all, and records whether their data is known. */
  read(servers?: Iterable<FakeServer>): Reports {
    const reports = this.reportsOf(servers);
    const asked = this.clock.read();
    for (const [identity, report] of reports) {
      if (identity.relationOf(report) === 'unknown') identity.noteUnknown(report, asked);
      else this.rounds.accept(identity, report, asked);
    }
    return reports;
  }
}
