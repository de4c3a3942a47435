import { AsyncLocalStorage } from 'node:async_hooks';

/** A validated name of a tenant. */
export type TenantId = string & { readonly checked: unique symbol };

/** Valid names of a tenant. They contain no colon, so that a name cannot extend beyond its part of a key. */
const TENANT_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const current = new AsyncLocalStorage<TenantId>();

/** The tenant that a header names; `undefined` if the header is missing or invalid. */
export function parseTenantId(header: unknown): TenantId | undefined {
  return typeof header === 'string' && TENANT_ID.test(header) ? (header as TenantId) : undefined;
}

/** Runs work, and everything it calls, for a tenant. */
export function runFor<T>(tenant: TenantId, work: () => T): T {
  return current.run(tenant, work);
}

/** @throws outside of a request, because a key without its tenant would lock the resource for all tenants */
export function currentTenant(): TenantId {
  const tenant = current.getStore();
  if (tenant === undefined) throw new Error('No tenant: this does not run for a request');
  return tenant;
}

/**
 * The key of a resource of the current tenant. Different tenants, kinds or ids never give the same key, whatever an id
 * contains: its colons are encoded.
 */
export function tenantKey(kind: 'cart' | 'order', id: string): string {
  return `tenant:${currentTenant()}:${kind}:${encodeURIComponent(id)}`;
}
