import { resolveFlag } from '../core/settings/settings.js';

/** What can be declared for one master in addition to its connection settings. */
export interface DurableOption {
  /**
   * Declares that this master keeps each acknowledged write across restarts.
   * @default the module's `durable`
   */
  readonly durable?: boolean;
}

/** How a server keeps its data, as far as it says so. */
interface Durability {
  readonly hasAppendOnlyFile: boolean;
  /** `appendfsync`; `undefined` if the server does not report it. */
  readonly fsync: string | undefined;
  /** Whether its append-only file is being written anew. */
  readonly isRewriting?: boolean;
  readonly replicas: number;
}

/** What visibly contradicts the declaration that a server is durable, in words. */
export function flawsIn({ hasAppendOnlyFile, fsync, isRewriting = false, replicas }: Durability): readonly string[] {
  if (!hasAppendOnlyFile) return ['it has no append-only file'];
  return [
    ...(fsync === undefined || fsync === 'always' ? [] : [`its appendfsync is ${fsync}, not always`]),
    ...(isRewriting ? ['its append-only file is being written anew, and is incomplete if it is the first one'] : []),
    ...(replicas > 0
      ? [`it has ${replicas} replicas, whose data may lack its last writes when started in its place`]
      : []),
  ];
}

/** @throws {RedlockConfigError} if it is not a flag */
export function resolveDurable(option: string, durable: unknown): boolean | undefined {
  return durable === undefined ? undefined : resolveFlag(`${option}.durable`, durable);
}
