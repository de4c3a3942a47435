import { redactUrl, show } from '../core/display.js';
import { RedlockConfigError } from '../core/errors.js';
import { checkEndpoint, endpointOf, type NodeAddress } from './endpoint.js';
import { isPlainObject } from './plain-object.js';

/** An address as a node announces it to the one by which this process reaches the node. */
export type Translation = (announced: NodeAddress) => NodeAddress;

/**
 * Reads the option `natMap` of ioredis: a record by announced address, or a function.
 *
 * @throws {RedlockConfigError} if it is neither, or an address in it is invalid. The translation throws the same if the
 * function returns an invalid address.
 */
export function translationBy(option: string, natMap: unknown): Translation {
  if (natMap == null) return (announced) => announced;
  if (typeof natMap === 'function') return translationByFunction(option, natMap as (announced: string) => unknown);
  if (!isPlainObject(natMap)) {
    const requirement = 'must be an object with the announced addresses as keys, or a function';
    throw new RedlockConfigError(option, natMap, requirement);
  }
  const targets = new Map<string, NodeAddress>();
  for (const [key, target] of Object.entries(natMap)) {
    targets.set(announcedBy(option, key), targetOf(`${option}[${show(key)}]`, target));
  }
  return (announced) => targets.get(endpointOf(announced)) ?? announced;
}

function translationByFunction(option: string, natMap: (announced: string) => unknown): Translation {
  return (announced) => {
    const key = `${announced.host}:${announced.port}`;
    const target = natMap(key);
    return target ? targetOf(`${option}(${show(key)})`, target) : announced;
  };
}

/** In the keys of ioredis, an IPv6 address has no brackets. */
function announcedBy(option: string, key: string): string {
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/s.exec(key) ?? [];
  if (host === undefined) throw new RedlockConfigError(option, redactUrl(key), 'must have keys of the form host:port');
  return endpointOf(checkEndpoint(`${option}[${show(key)}]`, host, Number(port)));
}

function targetOf(option: string, target: unknown): NodeAddress {
  const { host, port } = isPlainObject(target) ? target : {};
  return checkEndpoint(option, host, port);
}
