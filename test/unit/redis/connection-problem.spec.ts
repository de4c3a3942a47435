import { describe, expect, it } from '@jest/globals';
import {
  closedEarly,
  EXPECTS_TLS,
  IS_HTTP,
  LACKS_TLS,
  type Language,
  problemFrom,
  problemWith,
  reasonOf,
} from '../../../lib/redis/connection-problem.js';

const CONTEXT = { usesTls: false, hasAnswered: false, secrets: ['hunter2'] };

function failure(message: string, code?: string): Error {
  return Object.assign(new Error(message), { code });
}

function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('The problem behind an error', () => {
  it.each<[string, Error, string]>([
    [
      'a wrong password',
      reply('WRONGPASS invalid username-password pair or user is disabled.'),
      'WRONGPASS it refuses',
    ],
    ['an old wrong password', reply('ERR invalid password'), 'WRONGPASS it refuses'],
    ['no password', reply('NOAUTH HELLO must be called with the client already authenticated'), 'NOAUTH it requires'],
    ['a password too many', reply('ERR Client sent AUTH, but no password is set'), 'it has no password: remove'],
    [
      'protected mode',
      reply('DENIED Redis is running in protected mode because ...'),
      'DENIED it is in protected mode',
    ],
    [
      'a missing command',
      reply("NOPERM this user has no permissions to run the 'script|load' command"),
      "NOPERM this user has no permissions to run the 'script|load' command: ACL SETUSER <its user> +script|load,",
    ],
    [
      'a missing key',
      reply('NOPERM this user has no permissions to access one of the keys used as arguments'),
      'NOPERM this user has no permissions to access one of the keys used as arguments: npx nestjs-redlock doctor',
    ],
    ['a database', reply('ERR DB index is out of range'), 'the DB index is out of range: correct'],
    ['an unknown command', reply("ERR unknown command 'HELLO', with args beginning with: '3'"), 'ERR unknown command'],
    [
      'an intermediate certificate',
      failure('unable to', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
      'its certificate is not from',
    ],
    ['a self-signed certificate', failure('self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'), 'its certificate is not from'],
    ['an early certificate', failure('not yet', 'CERT_NOT_YET_VALID'), 'its certificate is not valid yet'],
    [
      'a missing certificate of the client',
      failure(
        '80:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../x.c:1605:SSL alert number 116',
        'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      ),
      'it refuses the TLS handshake (tlsv13 alert certificate required): give a certificate of the client',
    ],
    [
      'another error of TLS',
      failure('80:error:0A000102:SSL routines:f:unsupported protocol:../x.c:1', 'ERR_SSL_UNSUPPORTED_PROTOCOL'),
      'the TLS handshake failed (unsupported protocol)',
    ],
    ['HTTP, with ioredis 5', failure('Protocol error, got "H" as reply type byte'), IS_HTTP.what],
    ['HTTP, with ioredis 6', failure('Unknown RESP type 72 "H". Please report this.'), IS_HTTP.what],
    ['an alert of TLS', failure('Unknown RESP type 21 "\u0015". Please report this.'), EXPECTS_TLS.what],
    [
      'another protocol',
      failure('Unknown RESP type 83 "S". Please report this.'),
      'it does not speak the protocol of Redis',
    ],
  ])('is permanent, and says what to change: %s', (_, error, beginning) => {
    const problem = problemFrom(error, CONTEXT);
    expect(reasonOf(problem).slice(0, beginning.length)).toBe(beginning);
    expect(problem.isPermanent).toBe(true);
  });

  it.each<[string, Error, string]>([
    [
      'a refused port',
      failure('connect ECONNREFUSED 10.0.0.1:1', 'ECONNREFUSED'),
      'connect ECONNREFUSED 10.0.0.1:1: start it',
    ],
    ['an unknown host', failure('getaddrinfo ENOTFOUND db', 'ENOTFOUND'), 'getaddrinfo ENOTFOUND db: its host name is'],
    ['a firewall', failure('connect ETIMEDOUT', 'ETIMEDOUT'), 'connect ETIMEDOUT: correct its address, or let'],
    ['a missing socket', failure('connect ENOENT /x', 'ENOENT'), 'connect ENOENT /x: start it'],
    [
      'an early end',
      failure('read ECONNRESET', 'ECONNRESET'),
      'it closes the connection before its first answer (read E',
    ],
    ['loading', reply('LOADING Redis is loading the dataset in memory'), 'LOADING Redis is loading'],
    ['too many clients', reply('ERR max number of clients reached'), 'ERR max number of clients'],
  ])('may end while the process waits: %s', (_, error, beginning) => {
    const problem = problemFrom(error, CONTEXT);
    expect(reasonOf(problem).slice(0, beginning.length)).toBe(beginning);
    expect(problem.isPermanent).toBeUndefined();
  });

  it('is the bare message once the server has answered over the connection, and contains no secret', () => {
    const error = failure('read ECONNRESET of hunter2', 'ECONNRESET');
    expect(problemFrom(error, { ...CONTEXT, hasAnswered: true })).toEqual({ what: 'read ECONNRESET of ***' });
  });

  it('hints at rediss:// without TLS, and at a certificate of the client with it', () => {
    expect(reasonOf(closedEarly(false))).toContain('use rediss://');
    expect(reasonOf(closedEarly(true))).toContain('tls: { cert, key }');
  });
});

describe('The language of a port', () => {
  it.each<[Language | undefined, boolean, unknown]>([
    ['tls', false, EXPECTS_TLS],
    ['tls', true, undefined],
    ['redis', true, LACKS_TLS],
    ['redis', false, undefined],
    ['http', true, IS_HTTP],
    ['http', false, IS_HTTP],
    [undefined, true, undefined],
  ])('%s, where TLS is used: %s', (language, usesTls, expected) => {
    expect(problemWith(language, usesTls)).toBe(expected);
  });
});
