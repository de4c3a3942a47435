import { RedlockConfigError } from '../core/errors.js';
import { redactAddress } from './url-parts.js';

/** The address of a server. IPv6 addresses are without brackets. */
export interface NodeAddress {
  /** Name or address of the host. */
  readonly host: string;
  /** From 1 to 65535. */
  readonly port: number;
}

/** Host names, and IPv4 and IPv6 addresses, optionally with a zone. */
const HOST = /^(?:[\p{L}\p{M}\p{N}._-]+|[0-9a-f:.]+(?:%[\w.-]+)?)$/iu;
/** A name, an IPv4 address, or an IPv6 address in brackets, and a port. */
const HOST_AND_PORT = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/;

/** @throws {RedlockConfigError} if the host or the port is invalid */
export function checkEndpoint(option: string, host: unknown, port: unknown): NodeAddress {
  if (typeof host !== 'string' || host === '') {
    throw new RedlockConfigError(`${option}.host`, host, 'must be a non-empty string');
  }
  if (!HOST.test(host)) {
    // The host names the master in every log: a value that is not an address could be a password.
    throw new RedlockConfigError(`${option}.host`, redactAddress(host), 'must be the name or address of a host alone');
  }
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RedlockConfigError(`${option}.port`, port, 'must be from 1 to 65535');
  }
  return { host, port };
}

/** An address as a string, which is the same for the same address. */
export function endpointOf({ host, port }: NodeAddress): string {
  const lowerCased = host.toLowerCase();
  return `${lowerCased.includes(':') ? `[${lowerCased}]` : lowerCased}:${port}`;
}

/** Splits `host:port`, without checking either. `undefined` if the text has another form. */
export function splitEndpoint(text: string, defaultPort: number): NodeAddress | undefined {
  const [, address, name, port] = HOST_AND_PORT.exec(text.trim()) ?? [];
  const host = address ?? name;
  return host === undefined ? undefined : { host, port: port === undefined ? defaultPort : Number(port) };
}
