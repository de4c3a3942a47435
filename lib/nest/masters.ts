import { RedlockConfigError } from '../core/errors.js';
import type { Random } from '../core/holder.js';
import type { Clock } from '../core/clock.js';
import type { Master } from '../core/master.interface.js';
import type { LockObserver } from '../core/observer.js';
import type { Settings } from '../core/settings/settings.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { ClusterTwins } from '../redis/cluster/cluster-master.js';
import { languageOf } from '../redis/connection-problem.js';
import { doctorCommand } from '../redis/doctor-command.js';
import { RestartGuard } from '../redis/guard/restart-guard.js';
import { isServerMaster, masterFrom, refuseTwins, type ServerMaster } from '../redis/master-source.js';
import type { RedisMasterContext } from '../redis/redis-client.interface.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { redactAddress } from '../redis/urls.js';
import { hasMethods } from '../core/settings/table.js';
import { adviceFor, countOf } from './module-settings.js';
import type { MasterSource } from './redlock-module-options.interface.js';

interface Dependencies {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  // The clocks of this process have missed so many milliseconds.
  readonly clockLags: (milliseconds: number) => void;
}

export interface OpenedMasters {
  readonly masters: readonly Master[];
  readonly servers: readonly ServerMaster[];
  readonly guard: RestartGuard | undefined;
  // How to examine the servers.
  readonly advice: string | undefined;
}

// None of them is connected yet.
export function openMasters(sources: unknown, { clockLags, ...dependencies }: Dependencies): OpenedMasters {
  const { settings } = dependencies;
  const { instance } = settings;
  const guard = settings.restartGuard ? new RestartGuard({ ...dependencies, instance, clockLags }) : undefined;
  const masters = createMasters(sources, { ...dependencies, guard, languageOf, encoder: new RequestEncoder() });
  const servers = masters.filter(isServerMaster);
  const urls = servers.map(({ placeholderUrl }) => placeholderUrl);
  const advice = urls.length > 0 ? `To examine them: ${doctorCommand(urls, settings)}` : undefined;
  return { masters, servers, guard, advice };
}

const MASTER: readonly (keyof Master)[] = [
  ...(['ask', 'connect', 'problem', 'identity', 'reconnect', 'onReady', 'listen', 'close'] as const),
];

function createMasters(sources: unknown, context: RedisMasterContext): Master[] {
  if (sources === 'memory') return [new MemoryMaster(context.clock)];
  const count = countOf(sources);
  if (count === undefined) {
    // A string may be an address with a password.
    const shown = typeof sources === 'string' ? redactAddress(sources) : sources;
    const requirement = `must be a list of at least one master, or 'memory'${adviceFor(sources)}`;
    throw new RedlockConfigError('masters', shown, requirement);
  }
  const clusters = new ClusterTwins();
  // Not by `map`, which skips the holes of an array.
  const masters = Array.from({ length: count }, (_, index) =>
    createMaster(`masters[${index}]`, (sources as MasterSource[])[index] as MasterSource, {
      ...context,
      clusters,
      isAlone: count === 1,
    }),
  );
  refuseTwins('masters', masters);
  return masters;
}

function createMaster(option: string, source: MasterSource, context: RedisMasterContext): Master {
  if (!hasMethods(source, ['ask'])) return masterFrom(option, source, context);
  if (hasMethods(source, MASTER) && typeof Reflect.get(source, 'name') === 'string') return source as Master;
  throw new RedlockConfigError(option, source, `must have a name and the methods ${MASTER.join(', ')}`);
}
