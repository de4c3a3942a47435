import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { type Certificates, createCertificates } from './certificates.js';
import { deadPort } from './dead-port.js';

/** The mistakes in the address of a master, and what the error says about each. */
export const MISTAKES = {
  'TLS on a plain port':
    'its port does not speak TLS: use redis:// (no option tls), or the port on which it speaks TLS',
  'no TLS on a TLS port': 'its port expects TLS: use rediss:// (or the option tls)',
  'an unknown authority':
    'its certificate is not from an authority that this process trusts (self-signed certificate in certificate chain): ' +
    'give the certificate of the authority as tls: { ca }, or by the variable NODE_EXTRA_CA_CERTS',
  'a certificate for another host':
    "its certificate is for another host (IP: 127.0.0.1 is not in the cert's list): " +
    'use a host that the certificate names, or give that name as tls: { servername }',
  'an expired certificate': 'its certificate has expired: renew it on the server',
  'no password': 'NOAUTH it requires a password: put user and password into its URL',
  'a wrong password':
    'WRONGPASS it refuses the user or the password: correct them in its URL, where a special character is written %XX',
  'an ACL without EVAL':
    "NOPERM this user has no permissions to run the 'eval' command: " +
    'ACL SETUSER <its user> +eval, and what else doctor lists as missing',
  'an HTTP server': 'it is an HTTP server and not a Redis server: correct its host and port',
  'an HTTP server, with TLS': 'it is an HTTP server and not a Redis server: correct its host and port',
} as const;

/** Mistakes that waiting could correct. */
export const OUTAGES = {
  'a port without a server': /^connect ECONNREFUSED 127\.0\.0\.1:\d+: start it, or correct its address$/,
  'an unknown host': /^getaddrinfo (?:ENOTFOUND|EAI_AGAIN) redis\.invalid: /,
} as const;

export type Mistake = keyof typeof MISTAKES | keyof typeof OUTAGES;

export const PASSWORD = 'a-password-to-hide';

/** Servers on which each mistake can be made. */
export interface Mistakes extends AsyncDisposable {
  readonly certificates: Certificates;
  /** A source with the mistake. */
  sourceOf(mistake: Mistake): RedisOptions;
  /** The same as a URL. Trusts the authority only where the environment does. */
  urlOf(mistake: Mistake): string;
}

export async function startMistakes(): Promise<Mistakes> {
  const certificates = await createCertificates();
  const start = (args: readonly string[]): Promise<RedisServer> => RedisServer.start({ args });
  const [plain, guarded, limited, ...speaking] = await Promise.all([
    start([]),
    start(['--requirepass', 'another']),
    start(['--user', 'default', 'on', `>${PASSWORD}`, '~*', '&*', '+@all', '-eval']),
    ...(['valid', 'foreign', 'expired'] as const).map((name) =>
      RedisServer.start({ args: (port) => certificates.argsFor(name, port) }),
    ),
  ]);
  const [valid, foreign, expired] = speaking as [RedisServer, RedisServer, RedisServer];
  const http = createServer((_, response) => void response.end('hello')).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const httpPort = (http.address() as AddressInfo).port;
  const dead = await deadPort();

  const tls = { ca: readFileSync(certificates.ca) };
  const password = PASSWORD;
  const sources: Readonly<Record<Mistake, RedisOptions>> = {
    'TLS on a plain port': { port: plain.port, tls },
    'no TLS on a TLS port': { port: valid.port },
    'an unknown authority': { port: valid.port, tls: {} },
    'a certificate for another host': { port: foreign.port, tls },
    'an expired certificate': { port: expired.port, tls },
    'no password': { port: guarded.port },
    'a wrong password': { port: guarded.port, password },
    'an ACL without EVAL': { port: limited.port, password },
    'an HTTP server': { port: httpPort },
    'an HTTP server, with TLS': { port: httpPort, tls },
    'a port without a server': { port: dead },
    'an unknown host': { host: 'redis.invalid', port: 6379 },
  };
  const sourceOf = (mistake: Mistake): RedisOptions => ({ host: '127.0.0.1', ...sources[mistake] });
  return {
    certificates,
    sourceOf,
    urlOf: (mistake) => {
      const { host, port, password: secret, tls: secure } = sourceOf(mistake);
      return `${secure ? 'rediss' : 'redis'}://${secret ? `:${secret}@` : ''}${host}:${port}`;
    },
    [Symbol.asyncDispose]: async () => {
      http.close();
      http.closeAllConnections();
      await Promise.all([plain, guarded, limited, ...speaking].map((server) => server.stop()));
      await certificates[Symbol.asyncDispose]();
    },
  };
}
