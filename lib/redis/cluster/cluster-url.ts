import type { RedisOptions } from 'ioredis';
import type { NodeAddress } from '../endpoint.js';
import { hasForm, type HostListForm, splitHostListUrl } from '../host-list-url.js';
import { UrlError } from '../url-parts.js';

const FORM: HostListForm = {
  scheme: 'cluster',
  names: ['a node', 'the nodes of a cluster'],
  defaultPort: 6379,
  parameters: ['family', 'clusterNodeTimeout', 'batchPartitions'],
  insteadOfFragment: 'a # in a password is written %23',
};

const FLAGS = new Map([
  ['true', true],
  ['false', false],
]);

/** The options that a URL gives. */
export interface ClusterUrlOptions extends RedisOptions {
  readonly cluster: readonly NodeAddress[];
  /** Not parsed yet. */
  readonly clusterNodeTimeout?: number | string;
  /** Not checked yet. */
  readonly batchPartitions?: boolean | string;
}

/** Whether the address names the nodes of a cluster, with the scheme of this library or of another one. */
export function namesCluster(address: string): boolean {
  return hasForm(address, FORM);
}

/**
 * Parses the URL of a cluster.
 *
 * @throws {UrlError}
 */
export function optionsOfClusterUrl(address: string): ClusterUrlOptions {
  const { hosts, settings, usesTls, path, query } = splitHostListUrl(address, FORM);
  if (!['', '/', '/0'].includes(path)) {
    throw new UrlError('must have no path: a cluster has no database but 0, and a / in a password is written %2F');
  }
  const timeout = query.get('clusterNodeTimeout');
  const batches = query.get('batchPartitions');
  return {
    cluster: hosts,
    ...settings,
    ...(timeout !== null && { clusterNodeTimeout: /^\d+$/.test(timeout) ? Number(timeout) : timeout }),
    ...(batches !== null && { batchPartitions: FLAGS.get(batches) ?? batches }),
    ...(usesTls && { tls: {} }),
  };
}
