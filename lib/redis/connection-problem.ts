import { FOREIGN_MARKER, isReply, redactedMessageOf } from './replies.js';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

// No field contains a secret.
export interface ConnectionProblem {
  readonly what: string;
  readonly advice?: string;
  // Waiting cannot help: the settings of the connection or the server have to be changed.
  readonly isPermanent?: boolean;
  // The cause may be another one, which an examination of the port can find.
  readonly isVague?: boolean;
}

// `full`: a Redis server that takes no more connections.
export type Language = 'redis' | 'full' | 'tls' | 'http';

export interface ProblemContext {
  readonly usesTls: boolean;
  readonly hasAnswered: boolean;
  // No message may contain them.
  readonly secrets: readonly string[];
}

const CLIENT_CERTIFICATE =
  'it may require a certificate of the client: give tls: { cert, key }, or its `maxclients` is reached';
const CORRECT_ADDRESS = 'correct its host and port';

export const EXPECTS_TLS = permanent('its port expects TLS', 'use rediss:// (or the option tls)');
export const LACKS_TLS = permanent(
  'its port does not speak TLS',
  'use redis:// (no option tls), or the port on which it speaks TLS',
);
export const IS_HTTP = permanent('it is an HTTP server and not a Redis server', CORRECT_ADDRESS);
export const IS_FULL: ConnectionProblem = {
  what: 'ERR max number of clients reached',
  advice: 'raise its `maxclients` (of a managed server: its plan), or let fewer processes connect',
};
const CLOSES_EARLY = 'it closes the connection before its first answer';

const BY_CODE: Readonly<Record<string, (message: string) => ConnectionProblem>> = {
  ECONNREFUSED: (message) => ({ what: message, advice: 'start it, or correct its address' }),
  ENOTFOUND: (message) => ({ what: message, advice: 'its host name is unknown: correct it, or the name service' }),
  EAI_AGAIN: (message) => ({ what: message, advice: 'the name service does not answer' }),
  ENOENT: (message) => ({ what: message, advice: 'start it, or correct the path of its socket' }),
  EACCES: (message) => ({ what: message, advice: 'permit this process to use its socket' }),
  EHOSTUNREACH: (message) => ({ what: message, advice: 'correct its address, or the network' }),
  ENETUNREACH: (message) => ({ what: message, advice: 'correct its address, or the network' }),
  ETIMEDOUT: (message) => ({
    ...{ what: message, advice: 'correct its address, or let the network through' },
    isVague: true,
  }),
  CERT_HAS_EXPIRED: () => permanent('its certificate has expired', 'renew it on the server'),
  CERT_NOT_YET_VALID: () =>
    permanent('its certificate is not valid yet', 'correct the clock of this machine, or the certificate'),
  ERR_TLS_CERT_ALTNAME_INVALID: (message) =>
    permanent(
      `its certificate is for another host (${message.replace(/^Hostname\/IP does not match certificate's altnames: /, '').replace(/[.:\s]+$/, '')})`,
      'use a host that the certificate names, or give that name as tls: { servername }',
    ),
};

// For errors whose codes vary. Each pattern is tried on code and message together.
const BY_TEXT: readonly (readonly [RegExp, (message: string) => ConnectionProblem])[] = [
  [
    /\b(?:SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF)/,
    (message) =>
      permanent(
        `its certificate is not from an authority that this process trusts (${message})`,
        'give the certificate of the authority as tls: { ca }, or by the variable NODE_EXTRA_CA_CERTS',
      ),
  ],
  [
    /ALERT_CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE/,
    (message) =>
      permanent(
        `it refuses the TLS handshake (${shortTls(message)})`,
        'give a certificate of the client: tls: { cert, key }',
      ),
  ],
  [
    /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNEXPECTED_MESSAGE)/,
    () => ({ ...LACKS_TLS, isVague: true }),
  ],
  [
    /^ERR_(?:SSL|TLS)_/,
    (message) => permanent(`the TLS handshake failed (${shortTls(message)})`, 'correct its tls options'),
  ],
  // ioredis 6 and 5. 21 is the first byte of an alert in TLS, 72 is the H of HTTP.
  [/Unknown RESP type 72\b|Protocol error, got "H"/, () => IS_HTTP],
  [/Unknown RESP type 21\b|Protocol error, got "\\u0015"/, () => EXPECTS_TLS],
  [
    /Unknown RESP type|^Protocol error, got/,
    () => permanent('it does not speak the protocol of Redis', CORRECT_ADDRESS),
  ],
];

// Errors of a server that end only when its users or its settings are changed.
const BY_REPLY: readonly (readonly [RegExp, string])[] = [
  [/^WRONGTYPE\b/, FOREIGN_MARKER],
  [/^NOAUTH\b/, 'NOAUTH it requires a password: put user and password into its URL'],
  [
    /^WRONGPASS\b|^ERR invalid password/,
    'WRONGPASS it refuses the user or the password: correct them in its URL, where a special character is written %XX',
  ],
  [/^ERR (?:Client sent AUTH|AUTH .*called without any password)/, 'it has no password: remove the one in its URL'],
  [/^DENIED\b/, 'DENIED it is in protected mode: give it a password, or `protected-mode no`'],
  [
    /^ERR (?:invalid DB index|DB index is out of range)/,
    'the DB index is out of range: correct the number of the database in its URL',
  ],
];

const FULL = /^ERR max number of clients/;

export function problemFrom(error: unknown, { usesTls, hasAnswered, secrets }: ProblemContext): ConnectionProblem {
  const message = redactedMessageOf(error, secrets);
  if (isReply(error)) return problemFromReply(message);
  const code = codeOf(error);
  // A port that refuses has no connection over which it could have answered.
  if (hasAnswered && code !== 'ECONNREFUSED') return { what: message };
  const known = BY_CODE[code] ?? BY_TEXT.find(([pattern]) => pattern.test(`${code} ${message}`))?.[1];
  if (known) return known(message);
  if (
    /\b(?:ECONNRESET|EPIPE|ECONNABORTED)\b|^ ?(?:Connection is closed|Stream isn't writeable)/.test(
      `${code} ${message}`,
    )
  ) {
    return closedEarly(usesTls, message);
  }
  return { what: message };
}

export function closedEarly(usesTls: boolean, message?: string): ConnectionProblem {
  const what = message === undefined ? CLOSES_EARLY : `${CLOSES_EARLY} (${message})`;
  return { what, advice: usesTls ? CLIENT_CERTIFICATE : 'if its port expects TLS, use rediss://', isVague: true };
}

export function problemWith(language: Language | undefined, usesTls: boolean): ConnectionProblem | undefined {
  if (language === 'full') return IS_FULL;
  if (language === 'http') return IS_HTTP;
  if (language === 'tls') return usesTls ? undefined : EXPECTS_TLS;
  return language === 'redis' && usesTls ? LACKS_TLS : undefined;
}

export function reasonOf({ what, advice }: ConnectionProblem): string {
  return advice === undefined ? what : `${what}: ${advice}`;
}

function problemFromReply(message: string): ConnectionProblem {
  if (FULL.test(message)) return IS_FULL;
  const known = BY_REPLY.find(([pattern]) => pattern.test(message))?.[1];
  if (known !== undefined) {
    const end = known.indexOf(': ');
    return permanent(known.slice(0, end), known.slice(end + 2));
  }
  if (message.startsWith('NOPERM')) return permanent(message.replace(/\.$/, ''), adviceOnPermission(message));
  return { what: message, ...(/^ERR unknown command/i.test(message) && { isPermanent: true }) };
}

function adviceOnPermission(message: string): string {
  const [, command] = /\bto run the '([\w|-]+)' command/.exec(message) ?? [];
  if (command !== undefined) return `ACL SETUSER <its user> +${command}, and what else doctor lists as missing`;
  return 'npx nestjs-redlock doctor lists the ACL rules that its user lacks';
}

function permanent(what: string, advice: string): ConnectionProblem {
  return { what, advice, isPermanent: true };
}

// An error of OpenSSL is a line of fields; the last but two is its text.
function shortTls(message: string): string {
  return /:SSL routines:[^:]*:([^:]+)/.exec(message)?.[1] ?? message;
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

// First bytes of an answer. 0x15 begins an alert in TLS.
const BEGINNINGS: readonly (readonly [RegExp, Language])[] = [
  [/^HTTP\//, 'http'],
  [/^-ERR max n/, 'full'],
  // eslint-disable-next-line no-control-regex
  [/^\x15/, 'tls'],
  [/^[+-]/, 'redis'],
];
// For each of two connections, in milliseconds.
const WITHIN = 1_500;
// A server that takes no more connections says so before it closes, unasked: bytes that meet a closed socket could destroy
// what it has said. In milliseconds.
const ASKED_AFTER = 50;
// These errors of a certificate show that there is one.
const CERTIFICATE_ERROR = /CERT|^UNABLE_TO_/;

// Over connections of its own, without credentials.
export async function languageOf(endpoint: Endpoint): Promise<Language | undefined> {
  const language = await trySocket(endpoint);
  // A port that expects TLS refuses other bytes at once.
  return language === 'closed' ? tryTls(endpoint) : language;
}

function trySocket(endpoint: Endpoint): Promise<Language | 'closed' | undefined> {
  const socket = connectPlain({ ...endpoint });
  return outcomeOf<Language | 'closed'>(socket, (end) => {
    socket.once('connect', () => setTimeout(() => socket.destroyed || socket.write('PING\r\n'), ASKED_AFTER).unref());
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
