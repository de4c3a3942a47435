import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Language } from './connection-problem.js';

/** The address of a server. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** First bytes of an answer, by language. 0x15 begins an alert in TLS. */
const BEGINNINGS: readonly (readonly [RegExp, Language])[] = [
  [/^HTTP\//, 'http'],
  // eslint-disable-next-line no-control-regex
  [/^\x15/, 'tls'],
  [/^[+-]/, 'redis'],
];
/** Time limit for each of two connections, in milliseconds. */
const WITHIN = 1_500;
/** These errors of a certificate show that there is one. */
const CERTIFICATE_ERROR = /CERT|^UNABLE_TO_/;

/** Finds out which language a port speaks, over connections of its own. Sends no credentials. */
export async function languageOf(endpoint: Endpoint): Promise<Language | undefined> {
  const language = await trySocket(endpoint);
  // A port that expects TLS refuses other bytes at once.
  return language === 'closed' ? tryTls(endpoint) : language;
}

function trySocket(endpoint: Endpoint): Promise<Language | 'closed' | undefined> {
  const socket = connectPlain({ ...endpoint });
  return outcomeOf<Language | 'closed'>(socket, (end) => {
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      const beginning = data.toString('latin1', 0, 16);
      end(BEGINNINGS.find(([pattern]) => pattern.test(beginning))?.[1]);
    });
    socket.once('close', () => end('closed'));
  });
}

function tryTls(endpoint: Endpoint): Promise<Language | undefined> {
  const { host } = endpoint;
  const socket = connectTls({ ...endpoint, ...(isIP(host) === 0 && { servername: host }) });
  return outcomeOf<Language>(socket, (end) => {
    socket.once('secureConnect', () => end('tls'));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(CERTIFICATE_ERROR.test(error.code ?? '') ? 'tls' : undefined),
    );
  });
}

type End<T> = (language: T | undefined) => void;

function outcomeOf<T>(socket: Socket, listen: (end: End<T>) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    const end: End<T> = (language) => {
      clearTimeout(timer);
      resolve(language);
      socket.destroy();
    };
    const timer = setTimeout(() => end(undefined), WITHIN);
    socket.on('error', () => undefined);
    listen(end);
    socket.once('close', () => end(undefined));
  });
}
