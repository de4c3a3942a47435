import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type LockInspection, LockService, type RedlockStatus } from 'nestjs-redlock';
import { type Observable, ReplaySubject } from 'rxjs';
import type { Config } from '../config.js';
import { CONFIG } from '../config.token.js';
import { Instances } from '../instances/instances.js';
import { LocalMasters } from '../masters/local-masters.js';
import { LockBoard } from './lock-board.js';
import type { LockView, MasterView, Snapshot } from './snapshot.js';
import { Timeline } from './timeline.js';

/** Milliseconds between two snapshots. */
const INTERVAL = 250;

/** Takes a snapshot several times a second, and records changes of the masters. */
@Injectable()
export class Pulse implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly taken = new ReplaySubject<Snapshot>(1);
  private readonly stopping = new AbortController();
  private beating: Promise<void> = Promise.resolve();
  private latest: Snapshot | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly locks: LockService,
    private readonly masters: LocalMasters,
    private readonly instances: Instances,
    private readonly board: LockBoard,
    private readonly timeline: Timeline,
  ) {}

  /** The latest snapshot, and all later ones. */
  get snapshots(): Observable<Snapshot> {
    return this.taken;
  }

  onApplicationBootstrap(): void {
    this.beating = this.beat();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.beating;
    this.taken.complete();
  }

  private async beat(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const snapshot = await this.look();
      this.recordChanges(snapshot);
      this.latest = snapshot;
      this.taken.next(snapshot);
      await sleep(INTERVAL, undefined, { signal }).catch(() => undefined);
    }
  }

  private async look(): Promise<Snapshot> {
    const [status, ...inspections] = await Promise.all([
      this.locks.probe(),
      ...this.config.jobs.map(({ resource }) => this.locks.inspect(resource)),
    ]);
    return {
      at: Date.now(),
      quorum: status.quorum,
      canVote: status.canVote,
      masters: this.viewsOfMasters(status),
      locks: inspections.map((inspection) => this.viewOfLock(inspection)),
      instances: this.instances.processes.map(({ name, pid, state }) => ({ name, pid, process: state })),
    };
  }

  private viewsOfMasters({ masters }: RedlockStatus): MasterView[] {
    return this.masters.processes.flatMap(({ pid, state }, index) => {
      const status = masters[index];
      return status ? [{ ...status, number: index + 1, pid, process: state }] : [];
    });
  }

  private viewOfLock({ resource, masters }: LockInspection): LockView {
    const keys = masters.map(({ answer }) => {
      if (answer?.kind === 'held') return 'held';
      return answer?.kind === 'granted' ? 'free' : 'unknown';
    });
    return { resource, keys, holder: this.board.holderOf(resource), waiting: this.board.waitingFor(resource) };
  }

  private recordChanges({ masters, canVote }: Snapshot): void {
    for (const { number, state, reason, remaining } of masters) {
      if (state === this.latest?.masters[number - 1]?.state) continue;
      this.timeline.record({
        ...{ kind: 'master', number, state },
        ...(reason !== undefined && { reason }),
        ...(remaining !== undefined && { remaining }),
      });
    }
    if (canVote === this.latest?.canVote) return;
    this.timeline.record({ kind: 'quorum', canVote, voting: masters.filter(({ state }) => state === 'voting').length });
  }
}
