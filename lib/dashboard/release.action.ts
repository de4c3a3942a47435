import { createHash } from 'node:crypto';
import { BadRequestException, ConflictException, type LoggerService } from '@nestjs/common';
import { auditLine, type AuditRecord, type Owners, type Target, titleOf } from '../core/operator/forced-release.js';
import { showNames } from '../core/display.js';
import type { EventLog } from './views.js';
import type { ServiceWatch } from './service-watch.js';

export interface ForcedReleaseRequest {
  readonly target: Target;
  // Of the inspection that the user saw.
  readonly ticket: string;
  // The name of the resource, typed by the user; for a permit with its slot, as in `stripe #3`.
  readonly confirm: string;
}

// Identifies the holders that were found. Their tokens cannot be derived from it.
export function ticketOf({ held }: Owners): string | undefined {
  if (held.length === 0) return undefined;
  const tokens = [...new Set(held.map(({ owner }) => owner))].sort();
  return createHash('sha256').update(JSON.stringify(tokens)).digest('hex');
}

export class ReleaseAction {
  constructor(
    private readonly logger: LoggerService,
    private readonly events: EventLog,
  ) {}

  async run(watch: ServiceWatch, by: string, { target, ticket, confirm }: ForcedReleaseRequest): Promise<AuditRecord> {
    const { resource, slot } = target;
    if (confirm !== (slot === undefined ? resource : `${resource} #${slot}`)) {
      throw new BadRequestException(this.refuse(watch, by, target, 'its name was not typed as confirmation'));
    }
    const { operator } = watch.locks;
    const owners = await operator.owners(target);
    const found = ticketOf(owners);
    if (found !== ticket) {
      const reason = found === undefined ? 'it is not held any more' : 'another holder has it now';
      throw new ConflictException(this.refuse(watch, by, target, reason));
    }
    const { outcome } = await operator.revoke(target, owners);
    const at = new Date().toISOString();
    const record: AuditRecord = { ...outcome, ...target, at, by, mode: 'revoked' };
    this.record(watch, auditLine(record));
    return record;
  }

  private refuse(watch: ServiceWatch, by: string, target: Target, reason: string): string {
    const names = titleOf(target);
    this.record(watch, `audit: ${new Date().toISOString()} ${showNames([by])} did not release ${names}: ${reason}`);
    return `${names} was not released: ${reason}`;
  }

  private record(watch: ServiceWatch, line: string): void {
    this.logger.log(watch.name === null ? line : `${line} (lock service ${showNames([watch.name])})`);
    this.events.add(watch.name, 'action', line.replace(/^audit: \S+ /, ''));
  }
}
