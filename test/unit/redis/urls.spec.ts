import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import { resolveSettings } from '../../../lib/settings/settings.js';
import { doctorCommand, placeholderUrlOf } from '../../../lib/redis/doctor-command.js';
import { redisMasters } from '../../../lib/redis/master-source.js';
import { addressesIn, isListOfAddresses, redactAddress, settingsOfUrl } from '../../../lib/redis/urls.js';
import { contextOf } from '../../support/context.js';
import { fc } from '../../support/properties.js';

it.each([
  ['', []],
  [' , ', []],
  ['redis://a', ['redis://a']],
  ['redis://a, rediss://b,/run/a.sock', ['redis://a', 'rediss://b', '/run/a.sock']],
  ['redis://a,,redis://b,', ['redis://a', 'redis://b']],
  ['redis://a,redis+sentinel://b:1,c:2/m,redis://d', ['redis://a', 'redis+sentinel://b:1,c:2/m', 'redis://d']],
  ['redis+cluster://a:1,b:2,rediss+cluster://c', ['redis+cluster://a:1,b:2', 'rediss+cluster://c']],
])('addressesIn splits a list at its commas, but not between the hosts of one URL: %j', (list, addresses) =>
  expect(addressesIn(list)).toEqual(addresses),
);

it.each([
  ['redis://a:1,redis://b:1', true],
  ['redis://:p@a:1,redis://:p@b:1', true],
  ['a:1,b:1', true],
  ['redis://:a,b@host', false],
  ['redis://a', false],
  ['redis+cluster://a:1,b:1', false],
  ['rediss+sentinel://a:1,b:1/m', false],
  ['host:6379,password=p,ssl=True', false],
  ['/run/a,b.sock', false],
])('isListOfAddresses recognizes several addresses in one text, and not several hosts of one: %j', (text, isList) =>
  expect(isListOfAddresses(text)).toBe(isList),
);

const TLS = { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} };

describe('The URL of a master that sentinels watch', () => {
  it.each<[string, object]>([
    ['redis+sentinel://a:1,b:2/locks', { sentinels: [at('a', 1), at('b', 2)], name: 'locks' }],
    ['redis+sentinel://a/locks', { sentinels: [at('a', 26_379)], name: 'locks' }],
    ['redis+sentinel://a, b/locks', { sentinels: [at('a', 26_379), at('b', 26_379)], name: 'locks' }],
    [
      'redis+sentinel://[::1]:1,[fe80::1%25eth0]/m',
      { sentinels: [at('::1', 1), at('fe80::1%eth0', 26_379)], name: 'm' },
    ],
    ['Redis+Sentinel://a/my%20locks', { sentinels: [at('a', 26_379)], name: 'my locks' }],
    ['redis+sentinel://a/m/3', { sentinels: [at('a', 26_379)], name: 'm', db: 3 }],
    ['redis+sentinel://a/m?db=4&family=6', { sentinels: [at('a', 26_379)], name: 'm', db: 4, family: 6 }],
    ['redis+sentinel://u:p%40%3A@a/m', { sentinels: [at('a', 26_379)], name: 'm', username: 'u', password: 'p@:' }],
    ['redis+sentinel://:p:q@r@a/m', { sentinels: [at('a', 26_379)], name: 'm', username: '', password: 'p:q@r' }],
    [
      'redis+sentinel://a/m?sentinelUsername=u&sentinelPassword=p%26',
      { sentinels: [at('a', 26_379)], name: 'm', sentinelUsername: 'u', sentinelPassword: 'p&' },
    ],
    ['rediss+sentinel://a/m', { sentinels: [at('a', 26_379)], name: 'm', ...TLS }],
  ])('gives the settings of a client: %s', (url, settings) => expect(settingsOfUrl(url)).toEqual(settings));

  it.each<[string, RegExp]>([
    ['redis+sentinel://', /^must list sentinels as host:port/],
    ['redis+sentinel://a,,b/m', /^must list sentinels as host:port/],
    ['redis+sentinel://::1/m', /^must list sentinels as host:port/],
    ['redis+sentinel://user:pa/ss@a/m', /^must list sentinels as host:port.* \/ is written %2F/],
    ['redis+sentinel://user:1/ss@a/m', /^must end with the name of the master/],
    ['redis+sentinel://a:1', /^must end with the name of the master/],
    ['redis+sentinel://a/m/1/2', /^must end with the name of the master/],
    ['redis+sentinel://a/m&sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m;sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m,sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%3FsentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m:p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%2Fp', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%23p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m/one', /^must have the number of a database after the name/],
    ['redis+sentinel://a/m?db=one', /^must have the number of a database after the name/],
    ['redis+sentinel://a:0/m', /^must have ports from 1 to 65535/],
    ['redis+sentinel://a/m/3?db=4', /^must name the database once, in the path or as db/],
    ['redis+sentinel://a/m?family=5', /^must have 0, 4 or 6 as its family/],
    ['redis+sentinel://a/m?sentinel_password=p', /^must have no parameter but .* sentinelPassword/],
    ['redis+sentinel://a/m#m', /^must have no fragment: the name of the master is the path/],
    ['redis+sentinel://u:100%@a/m', /%25/],
    ['redis+sentinel://a:1,redis+sentinel://b:1/m', /^must be one address: .* scheme of a sentinel only once/],
  ])('names what is wrong: %s', (url, requirement) => expect(settingsOfUrl(url)).toMatch(requirement));
});

function at(host: string, port: number): object {
  return { host, port };
}

const GROUP = { sentinels: [{ host: 'a' }, { host: '::1', port: 1 }], name: 'my locks' };

it.each([
  [{}, 'redis://localhost:6379'],
  [{ host: '10.0.0.1', port: 6379 }, 'redis://10.0.0.1:6379'],
  [{ host: '::1', port: 1, tls: {}, db: 2 }, 'rediss://[::1]:1/2'],
  [{ host: 'h', port: 1, username: 'app', password: 'hunter2' }, 'redis://USER:PASSWORD@h:1'],
  [{ host: 'h', port: 1, username: 'default', password: 'hunter2' }, 'redis://:PASSWORD@h:1'],
  [{ path: '/run/redis.sock', port: 1 }, '/run/redis.sock'],
  [{ ...GROUP, host: 'localhost', port: 6379 }, 'redis+sentinel://a:26379,[::1]:1/my%20locks'],
  [
    { ...GROUP, ...TLS, db: 2, sentinelPassword: 'p' },
    'rediss+sentinel://a:26379,[::1]:1/my%20locks?db=2&sentinelPassword=PASSWORD',
  ],
  [
    { ...GROUP, password: 'p', sentinelUsername: 'u' },
    'redis+sentinel://:PASSWORD@a:26379,[::1]:1/my%20locks?sentinelUsername=USER',
  ],
  [{ ...GROUP, tls: {} }, 'redis+sentinel://a:26379,[::1]:1/my%20locks'],
  [{ ...GROUP, sentinelTLS: {} }, 'redis://PRIMARY:6379'],
  [{ sentinels: [{ host: 's' }], host: 'localhost', port: 6379 }, 'redis://PRIMARY:6379'],
])('The URL of a master for the command line has placeholders instead of credentials: %j', (options, url) =>
  expect(placeholderUrlOf(options)).toBe(url),
);

describe('The command that examines the masters', () => {
  const urls = ['redis://a:1', 'redis://b:1', 'redis://c:1'];
  const masters = '--master redis://a:1 --master redis://b:1 --master redis://c:1';

  it.each([
    [{}, masters],
    [{ keyPrefix: 'app:' }, `${masters} --prefix app:`],
    [{ keyPrefix: "it's " }, `${masters} --prefix 'it'\\''s '`],
    [{ restartGuard: false }, `${masters} --no-restart-guard`],
  ])('has the settings on which its result depends: %j', (options, args) =>
    expect(doctorCommand(urls, resolveSettings(options, 3))).toBe(`npx nestjs-redlock doctor ${args}`),
  );
});

/** Connection strings of other ecosystems, with a password that may contain what separates the parts. */
const FORMS: readonly ((secret: string) => string)[] = [
  (secret) => `127.0.0.1:6380,password=${secret}`,
  (secret) => `127.0.0.1:6380,password=${secret},ssl=True,abortConnect=False`,
  (secret) => `cache.example:6380,ssl=true,user=app,password=ab@${secret}`,
  (secret) => `127.0.0.1:6380;password=${secret};ssl=true`,
  (secret) => `127.0.0.1:6380; Password: ${secret}`,
  (secret) => `Server=127.0.0.1;Port=6380;User=app;Pwd=${secret}`,
  (secret) => `host=127.0.0.1 port=6380 password=${secret}`,
  (secret) => `host: 127.0.0.1, password: ${secret}`,
  (secret) => `password=${secret},127.0.0.1:6380`,
  (secret) => `127.0.0.1:6380 ${secret}`,
  (secret) => `127.0.0.1:6380:${secret}`,
  (secret) => `app:${secret}@127.0.0.1:6380,ssl=true`,
  (secret) => `redis://127.0.0.1:6380?password=${secret}`,
  (secret) => `redis://127.0.0.1:6380,password=ab@${secret}`,
  (secret) => `redis://127.0.0.1:6380;password=${secret}`,
  (secret) => `redis://127.0.0.1:6380 password=${secret}`,
  (secret) => `redis://127.0.0.1:6380/0;password=${secret}@x`,
  (secret) => `rediss://127.0.0.1:6380/?auth=ab%40${secret}`,
  (secret) => `jdbc:redis://127.0.0.1:6380/0?password=${secret}`,
  (secret) => `jdbc:redis://app:ab@${secret}@127.0.0.1:6380`,
  (secret) => `tls://127.0.0.1:6380?password=ab@${secret}`,
  (secret) => `tcp://127.0.0.1:6380?auth=${secret}`,
  (secret) => `redis-socket://${secret}@/run/redis.sock`,
  (secret) => `redis-sentinel://ab@${secret}@127.0.0.1:26379?sentinelMasterId=m`,
  // With an @ in it, the rest would be the host of a correct URL.
  (secret) => `redis://app:${secret.replaceAll('@', '')}`,
  (secret) => `redis://:${secret.replaceAll('@', '')}`,
  (secret) => `{"host":"127.0.0.1","password":"${secret}"}`,
  (secret) => `"redis://app:ab@${secret}@127.0.0.1"`,
  (secret) => `REDIS_URL=redis://app:${secret}@127.0.0.1:6380`,
  (secret) => `redis-cli -h 127.0.0.1 -a ${secret}`,
  (secret) => `redis+sentinel://127.0.0.1:26379,password=ab@${secret}/mymaster`,
  (secret) => `redis+cluster://127.0.0.1:6379,password=ab@${secret}`,
];

/** Alone, so that no part of an address could be one by chance; with what a password may contain around it. */
const secrets = fc
  .tuple(fc.stringMatching(/^[@:/,;=&?#% +-]{0,2}$/), fc.stringMatching(/^[A-Z][a-zA-Z0-9]{11}$/))
  .map(([before, word]) => ({ text: before + word, word }));

function refusalOf(address: string): string {
  try {
    redisMasters('masters', [address], contextOf());
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    const { message, stack } = error as Error;
    return [message, stack, JSON.stringify(error), String(error)].join('\n');
  }
}

describe('The connection string of another ecosystem', () => {
  // The frames of a stack name files only, and take most of the time.
  const { stackTraceLimit } = Error;
  beforeAll(() => void (Error.stackTraceLimit = 0));
  afterAll(() => void (Error.stackTraceLimit = stackTraceLimit));

  it('is never shown with a password, whatever its form', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FORMS), secrets, (form, { text, word }) => {
        const address = form(text);
        expect([address, redactAddress(address)]).toEqual([address, expect.not.stringContaining(word)]);
        expect(refusalOf(address)).not.toContain(word);
        for (const part of addressesIn(address)) expect(refusalOf(part)).not.toContain(word);
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['redis://a/3?db=4', 'must name the database once, in the path or as db'],
    ['redis://a?db=3&db=4', 'must have the parameter db only once'],
    ['/run/a.sock?db=3&db=4', 'must have the parameter db only once'],
  ])('is refused if it names two databases: %s', (address, message) => expect(refusalOf(address)).toContain(message));

  it('is refused with what to write in its place', () =>
    expect(refusalOf('127.0.0.1:6380,password=ab@S3cR3tPw')).toContain('redis://user:password@host:6379'));
});
