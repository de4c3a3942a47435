import type { Clock, Instant } from '../core/clock.js';
import { faultOf, REPORT, type Report, reportOf } from './identity.js';
import type { Incarnation } from './incarnation.js';

/** How often another client may write the marker between our reading and writing. */
const MOST_RACES = 10;

/**
 * KEYS: the marker. ARGV: nonce and max that it must have; run, nonce, from, max. Compare and set, unless another server
 * has taken the place of the one that was asked.
 */
export const MARK = `
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)')
if run and run ~= ARGV[3] then return 0 end
local marker = redis.call('HMGET', KEYS[1], 'nonce', 'max')
if (marker[1] or '') ~= ARGV[1] or (marker[2] or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'run', ARGV[3], 'nonce', ARGV[4], 'from', ARGV[5], 'max', ARGV[6])
return 1`;

/** What a handshake needs of a connection. */
export type Evaluate = (
  script: string,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** How a handshake ended. */
export interface Recognized {
  readonly report: Report;
  /** The moment before the report was asked for. */
  readonly asked: Instant;
  /** Why the server must not vote, if it must not. */
  readonly fault: string | undefined;
}

/**
 * Asks a server who it is, and agrees with it and all other clients from when on its votes count.
 *
 * Identity and marker are read in one script, so that they come from one server. Without an incarnation there is only
 * the question who it is.
 */
export async function handshake(
  evaluate: Evaluate,
  marker: string,
  incarnation: Incarnation | undefined,
  clock: Clock,
): Promise<Recognized> {
  const begun = clock.read();
  const first = reportOf(await evaluate(REPORT, [], []));
  const fault = faultOf(first);
  if (fault !== undefined || !incarnation) return { report: first, asked: begun, fault };
  for (let race = 0; race < MOST_RACES; race++) {
    const asked = clock.read();
    const report = reportOf(await evaluate(REPORT, [marker], []));
    const assessment = incarnation.assess(report);
    const { run, nonce, from, maxTtl } = assessment.marker;
    const args = [report.marker?.nonce ?? '', report.marker?.maxTtl ?? '', run, nonce, from, maxTtl];
    if (assessment.isNew && (await evaluate(MARK, [marker], args)) !== 1) continue;
    incarnation.accept(assessment, report, asked);
    return { report, asked, fault };
  }
  throw new Error('its marker is written by others all the time');
}
