import { Injectable } from '@nestjs/common';
import type { News } from '../worker/news.js';
import { Timeline } from './timeline.js';

/** The holder of a lock, as far as it has reported. */
export interface Holder {
  readonly instance: string;
  /** When it was granted, in milliseconds since the Unix epoch. */
  readonly since: number;
  /** When its validity ends unless it is extended; `undefined` until the holder has reported it. */
  validUntil: number | undefined;
  token: number | undefined;
}

interface Row {
  holder: Holder | undefined;
  /** The last holder. */
  latest: string | undefined;
  readonly waiting: Set<string>;
}

/** Combines the reports of all instances. */
@Injectable()
export class LockBoard {
  private readonly rows = new Map<string, Row>();

  constructor(private readonly timeline: Timeline) {}

  holderOf(resource: string): Holder | undefined {
    return this.row(resource).holder;
  }

  /** Instances that wait for the resource, in the order of their requests. */
  waitingFor(resource: string): string[] {
    return [...this.row(resource).waiting];
  }

  /** Handles a report of an instance. Reports of two instances may arrive in any order. */
  hear(instance: string, news: News): void {
    const row = this.row(news.resource);
    if (news.kind === 'waiting') row.waiting.add(instance);
    else row.waiting.delete(instance);
    if (news.kind === 'granted') this.grant(row, instance, news);
    if (news.kind === 'holding' && row.holder?.instance === instance) {
      row.holder.validUntil = news.at + news.remaining;
      row.holder.token = news.token;
    }
    if (news.kind === 'ended') this.end(row, instance, news);
  }

  private grant(row: Row, instance: string, { at, resource, waited }: News & { kind: 'granted' }): void {
    const previous = row.latest === instance ? undefined : row.latest;
    row.holder = { instance, since: at, validUntil: undefined, token: undefined };
    row.latest = instance;
    this.timeline.record({ kind: 'granted', resource, instance, previous, waited }, at);
  }

  private end(row: Row, instance: string, { at, resource, held, lost }: News & { kind: 'ended' }): void {
    // An instance that was paused reports late: another one may have held the lock for a while.
    if (row.holder?.instance === instance) row.holder = undefined;
    if (lost) this.timeline.record({ kind: 'lost', resource, instance, held, cause: lost }, at);
    else this.timeline.record({ kind: 'released', resource, instance, held }, at);
  }

  private row(resource: string): Row {
    let row = this.rows.get(resource);
    if (!row) this.rows.set(resource, (row = { holder: undefined, latest: undefined, waiting: new Set() }));
    return row;
  }
}
