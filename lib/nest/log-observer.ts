import type { LoggerService } from '@nestjs/common';
import type { LockObserver } from '../core/observer.js';

/** Writes the events of masters and locks to the log of the application. */
export function logTo(logger: LoggerService): LockObserver {
  return {
    lockLost: (error) => void logger.warn(error.message),
    masterQuarantined: (master, reason, milliseconds) =>
      void logger.warn(
        `master ${master} does not vote for up to ${Math.ceil(milliseconds)} ms, since ${reason}: ` +
          `it may have lost locks that are held (see restartGuard and durable)`,
      ),
    clientClockLagged: (milliseconds) =>
      void logger.warn(
        `the clocks of this process were ${Math.ceil(milliseconds)} ms behind those of the masters: its locks end ` +
          `that much earlier`,
      ),
    ttlCut: (wanted, used, missing) =>
      void logger.warn(
        `a ttl of ${wanted} ms is cut to ${used} ms until all masters have been told of it: ${missing.join(', ')} ` +
          `cannot be reached`,
      ),
    masterRefused: (master, reason) => void logger.warn(`master ${master} does not vote: ${reason}`),
    masterVotesAgain: (master) => void logger.log(`master ${master} votes again`),
    masterAtRisk: (master, risk) => void logger.warn(`master ${master}: ${risk}`),
    masterLost: (master, reason) => void logger.warn(`lost the connection to ${master}: ${reason}`),
    masterFound: (master) => void logger.log(`connected to ${master} again`),
    quorumLost: (voting, all) => void logger.error(`no lock can be taken: ${voting} of ${all} masters vote`),
    quorumRestored: (voting, all) => void logger.log(`locks can be taken again: ${voting} of ${all} masters vote`),
    masterSilent: (master) => void logger.warn(`master ${master} has stopped answering: it is only probed`),
    masterAnswersAgain: (master) => void logger.log(`master ${master} answers again`),
  };
}
