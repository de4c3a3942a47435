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
  return (await trySocket(endpoint)) ?? (await tryTls(endpoint));
}

function trySocket(endpoint: Endpoint): Promise<Language | undefined> {
  const socket = connectPlain({ ...endpoint });
  return outcomeOf(socket, (end) => {
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      const beginning = data.toString('latin1', 0, 16);
      end(BEGINNINGS.find(([pattern]) => pattern.test(beginning))?.[1]);
    });
    socket.once('error', () => end(undefined));
  });
}

function tryTls(endpoint: Endpoint): Promise<Language | undefined> {
  const { host } = endpoint;
  const socket = connectTls({ ...endpoint, ...(isIP(host) === 0 && { servername: host }) });
  return outcomeOf(socket, (end) => {
    socket.once('secureConnect', () => end('tls'));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(CERTIFICATE_ERROR.test(error.code ?? '') ? 'tls' : undefined),
    );
  });
}

type End = (language: Language | undefined) => void;

function outcomeOf(socket: Socket, listen: (end: End) => void): Promise<Language | undefined> {
  return new Promise((resolve) => {
    const end: End = (language) => {
      clearTimeout(timer);
      resolve(language);
      socket.on('error', () => undefined);
      socket.destroy();
    };
    const timer = setTimeout(() => end(undefined), WITHIN);
    socket.unref();
    timer.unref();
    socket.once('close', () => end(undefined));
    listen(end);
  });
}
