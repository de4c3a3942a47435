import type { Clock, Timer } from '../redlock/clock.js';
import type { LoggerService } from '@nestjs/common';
import { describeReply, formatReports } from '../redlock/errors.js';
import { quorumWithin, type RedlockStatus, votingIn } from '../operate/status.js';
import type { LockObserver } from '../operate/observer.js';
import { showNames } from '../redlock/names.js';
import { votesOf } from '../settings/display.js';

// Lines of one subject that are written at once.
const BURST = 6;
// Of the time between two lines after that, in milliseconds.
const FIRST_INTERVAL = 1_000;
const LAST_INTERVAL = 60_000;

type WriteLine = (text: string) => unknown;

interface Subject {
  written: number;
  at: number;
  interval: number;
  leftOut: number;
  last: { readonly write: WriteLine; readonly text: string } | undefined;
  timer: Timer | undefined;
}

// A subject that changes all the time is written at a growing interval: each time its last line, which is the present
// state, with the number of those that were left out.
export class LogDamper {
  private readonly subjects = new Map<string, Subject>();

  constructor(private readonly clock: Pick<Clock, 'read' | 'schedule'>) {}

  write(name: string, write: WriteLine, text: string): void {
    const { monotonic: now } = this.clock.read();
    const subject = this.subjects.get(name) ?? {
      ...{ written: 0, at: -Infinity, interval: FIRST_INTERVAL, leftOut: 0, last: undefined, timer: undefined },
    };
    this.subjects.set(name, subject);
    if (subject.timer) {
      subject.leftOut++;
      subject.last = { write, text };
      return;
    }
    if (now - subject.at > 2 * subject.interval) {
      subject.written = 0;
      subject.interval = FIRST_INTERVAL;
    }
    subject.written++;
    subject.at = now;
    write(text);
    if (subject.written >= BURST) this.pause(subject);
  }

  end(): void {
    for (const subject of this.subjects.values()) {
      subject.timer?.cancel();
      this.resume(subject);
    }
  }

  private pause(subject: Subject): void {
    const again = (): void => {
      if (!this.resume(subject)) return;
      subject.interval = Math.min(LAST_INTERVAL, 2 * subject.interval);
      this.pause(subject);
    };
    subject.timer = this.clock.schedule(subject.interval, again).unref();
  }

  private resume(subject: Subject): boolean {
    const { last, leftOut } = subject;
    subject.timer = undefined;
    if (!last) return false;
    subject.last = undefined;
    subject.leftOut = 0;
    subject.at = this.clock.read().monotonic;
    const others = leftOut - 1;
    const note = ` (${others} more ${others === 1 ? 'change was' : 'changes were'} left out)`;
    last.write(`${last.text}${others === 0 ? '' : note}`);
    return true;
  }
}

// The wall time of `clock` dates the end of a quarantine. With `statusNow`, an outage has one line more, as soon as only
// quarantines have to end.
export function logTo(
  logger: LoggerService,
  clock: Pick<Clock, 'read' | 'schedule'>,
  statusNow: () => RedlockStatus | undefined = () => undefined,
): LockObserver {
  const damper = new LogDamper(clock);
  const info = (text: string): void => void logger.log(text);
  const warn = (text: string): void => void logger.warn(text);
  const error = (text: string): void => void logger.error(text);
  const lost = new Set<string>();
  // Reported as refused before the first status.
  const refused = new Set<string>();
  let wasQuorumLost = false;
  // Of an outage for which no line has said yet when it ends.
  let endIsUnknown = false;
  let hasBegun = false;
  const waits = (master: string, reason: string | undefined): string =>
    `master ${master} ${reason} before it votes: it may have lost locks that are held (see restartGuard)`;
  const locksFrom = (status: RedlockStatus): string =>
    `locks can be taken from ${quorumTime(status, clock)}: ${votes(status)}${why(status)}`;
  const announceEnd = (): void => {
    const status = endIsUnknown ? statusNow() : undefined;
    if (!status || status.canVote || quorumWithin(status) === undefined) return;
    endIsUnknown = false;
    damper.write('quorum', warn, locksFrom(status));
  };
  return {
    stopped: () => {
      damper.end();
    },
    firstStatus: (status) => {
      hasBegun = true;
      for (const { master, state, reason = '' } of status.canVote ? status.masters : []) {
        const isNew = state === 'refused' && !refused.has(master);
        if (state === 'quarantined') logger.warn(waits(master, reason));
        if (state !== 'down' && !isNew) continue;
        const why = isNew ? reason : describeReply({ kind: 'unreachable', reason, sent: false });
        logger.warn(`master ${master} does not vote: ${why}`);
      }
      if (status.canVote) logger.log(`locks are available: ${votes(status)}`);
      else if (quorumWithin(status) === undefined) logger.error(`no lock can be taken: ${votes(status)}${why(status)}`);
      else logger.warn(locksFrom(status));
      endIsUnknown = !status.canVote && quorumWithin(status) === undefined;
    },
    lockLost: (error) => void logger.warn(error.message),
    lockInDanger: (resources, remaining, answers) =>
      void logger.warn(
        `the lock on ${showNames(resources)} is in danger: it is lost in ${Math.floor(remaining)} ms unless a quorum of ` +
          `masters agrees to extend it${formatReports(answers)}`,
      ),
    waiting: (resources, holder) => {
      const known = holder && `, held by ${holder.instance} since ${holder.since.toISOString()}`;
      logger.debug?.(`a call waits for ${showNames(resources)}${known ?? ''}`);
    },
    woken: (resources, cause, master) => {
      logger.debug?.(`a call that waits for ${showNames(resources)} is woken: ${cause}${master ? `, ${master}` : ''}`);
    },
    skipped: (caller, error) => void logger.debug?.(`${caller} was skipped: ${error.message}`),
    masterQuarantined: (master, reason) => {
      // The first status has one line for all of them.
      if (!hasBegun) return;
      damper.write(`vote ${master}`, warn, waits(master, reason));
      announceEnd();
    },
    masterRefused: (master, reason) => {
      refused.add(master);
      damper.write(`vote ${master}`, warn, `master ${master} does not vote: ${reason}`);
    },
    masterVotesAgain: (master) => {
      damper.write(`vote ${master}`, info, `master ${master} votes again`);
    },
    masterAtRisk: (master, risk) => void logger.warn(`master ${master}: ${risk}`),
    masterRiskEnded: (master, risk) => void logger.log(`master ${master}: this is over: ${risk}`),
    masterLost: (master, reason) => {
      lost.add(master);
      damper.write(`connection ${master}`, warn, `lost the connection to ${master}: ${reason}`);
    },
    masterFound: (master) =>
      damper.write(`connection ${master}`, info, `connected to ${master}${lost.delete(master) ? ' again' : ''}`),
    quorumLost: (_voting, _masters, status) => {
      wasQuorumLost = true;
      const time = quorumTime(status, clock);
      endIsUnknown = time === undefined;
      const end = time === undefined ? '' : `, locks from ${time}`;
      damper.write('quorum', error, `no lock can be taken: ${votes(status)}${end}${why(status)}`);
    },
    quorumRestored: (_voting, _masters, status) =>
      damper.write('quorum', info, `locks ${wasQuorumLost ? 'can be taken again' : 'are available'}: ${votes(status)}`),
    masterSilent: (master) =>
      damper.write(`silence ${master}`, warn, `master ${master} has stopped answering: it is only probed`),
    masterAnswersAgain: (master) => damper.write(`silence ${master}`, info, `master ${master} answers again`),
  };
}

function votes(status: RedlockStatus): string {
  return votesOf(votingIn(status), status.masters.length);
}

function why({ masters }: RedlockStatus): string {
  const missing = masters.filter(({ state }) => state !== 'voting');
  return ` (${missing.map(({ master, state, reason }) => `${master}: ${state === 'quarantined' ? '' : `${state}, `}${reason}`).join('; ')})`;
}

// The time of day in the zone of this process, and how far off it is.
function quorumTime(status: RedlockStatus, clock: Pick<Clock, 'read'>): string | undefined {
  const within = quorumWithin(status);
  if (within === undefined) return undefined;
  const second = Math.ceil((clock.read().wall + within) / 1_000);
  const time = new Date(second * 1_000).toTimeString().slice(0, 8);
  return `${time} (in ${Math.ceil(within / 1_000)} s)`;
}
