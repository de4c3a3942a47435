import type { ServerIdentity } from '../identity.js';
import type { Claim } from './node-view.js';

/**
 * The marker of a partition. It is part of the data and names the process that the data belongs to: with any other process,
 * or under another claim, the data may lack acknowledged writes.
 * Protocol 12.5.
 */
export interface Seal {
  /** Run id of the process. */
  readonly run: string;
  /** Id of the history of its data. */
  readonly replid: string;
  /** The claim under which it served the partition; empty where the service reports none. */
  readonly owner: string;
  readonly epoch: string;
  /** Identifies this seal. */
  readonly nonce: string;
  /** When votes begin to count, by the clock of the process, in milliseconds. */
  readonly from: number;
  /** The largest ttl that may be in use, in milliseconds. */
  readonly maxTtl: number;
  /** Why votes have to wait until `from`. */
  readonly reason: string;
  /** Begins when data may have been lost: see `core/state`. */
  readonly generation: string;
}

/** The fields of the hash that a client reads. `at` and `by` are for operators. */
export const SEAL_FIELDS = [
  ...(['run', 'replid', 'owner', 'epoch', 'nonce', 'from', 'max', 'why', 'generation'] as const),
] as const;

/** @param values of {@link SEAL_FIELDS} */
export function sealFrom(values: readonly (string | null)[]): Seal | undefined {
  const [run, replid, owner, epoch, nonce, from, max, why, generation] = values.map((value) => value ?? '');
  if (!nonce) return undefined;
  return {
    ...{ run: run ?? '', replid: replid ?? '', owner: owner ?? '', epoch: epoch ?? '', nonce },
    ...{ from: Number(from), maxTtl: Number(max), reason: why ?? '', generation: generation ?? '' },
  };
}

/**
 * Why the data of a partition is unknown; `undefined` if it belongs to this process under this claim.
 * Protocol 12.5.
 */
export function reasonForSeal(
  seal: Seal | undefined,
  { run, replid }: ServerIdentity,
  claim: Claim,
): string | undefined {
  if (!seal) return 'it has no seal: it is new, or has lost its data';
  if (seal.owner !== '' && seal.owner !== claim.owner) return 'another node served it before';
  if (seal.run !== run) return 'the process that serves it was restarted';
  if (seal.replid !== replid) return 'its data has another history';
  if (seal.owner !== '' && seal.epoch !== String(claim.epoch))
    return 'it was served by another node meanwhile, or other slots were moved';
  return undefined;
}
