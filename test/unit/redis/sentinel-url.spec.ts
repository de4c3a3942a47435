import { describe, expect, it } from '@jest/globals';
import { settingsOfUrl } from '../../../lib/redis/redis-url.js';

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
  ])('gives the settings of a client: %s', (url, settings) => {
    expect(settingsOfUrl(url)).toEqual(settings);
  });

  it.each<[string, RegExp]>([
    ['redis+sentinel://', /^must list sentinels as host:port/],
    ['redis+sentinel://a,,b/m', /^must list sentinels as host:port/],
    ['redis+sentinel://a,/m', /^must list sentinels as host:port/],
    ['redis+sentinel://::1/m', /^must list sentinels as host:port/],
    ['redis+sentinel://user:pa/ss@a/m', /^must list sentinels as host:port.* \/ is written %2F/],
    ['redis+sentinel://user:1/ss@a/m', /^must end with the name of the master/],
    ['redis+sentinel://a:1', /^must end with the name of the master/],
    ['redis+sentinel://a:1/?db=1', /^must end with the name of the master/],
    ['redis+sentinel://a/m/1/2', /^must end with the name of the master/],
    ['redis+sentinel://a/m&sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m;sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m,sentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%3FsentinelPassword=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m:p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m:p%40b', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%2Fp', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m%23p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m=p', /^must have its parameters after a \?/],
    ['redis+sentinel://a/m/one', /^must have the number of a database after the name/],
    ['redis+sentinel://a/m?db=one', /^must have the number of a database after the name/],
    ['redis+sentinel://a:0/m', /^must have ports from 1 to 65535/],
    ['redis+sentinel://a,b:65536/m', /^must have ports from 1 to 65535/],
    ['redis+sentinel://a/m/3?db=4', /^must name the database once/],
    ['redis+sentinel://a/m?db=3&db=4', /^must have the parameter db only once/],
    ['redis+sentinel://a/m?family=5', /^must have 0, 4 or 6 as its family/],
    ['redis+sentinel://a/m?sentinel_password=p', /^must have no parameter but .* sentinelPassword/],
    ['redis+sentinel://a/m#m', /^must have no fragment: the name of the master is the path/],
    ['redis+sentinel://u:100%@a/m', /%25/],
    ['redis+sentinel://a:1,redis+sentinel://b:1/m', /^must be one address: .* scheme of a sentinel only once/],
    ['redis+sentinel://a/m,redis+sentinel://b/m', /^must be one address/],
    ['redis-sentinel://a/m', /^must begin with redis\+sentinel:\/\/ or rediss\+sentinel:\/\//],
    ['sentinel://a:1', /^must begin with redis\+sentinel:\/\//],
  ])('names what is wrong: %s', (url, requirement) => {
    expect(settingsOfUrl(url)).toMatch(requirement);
  });
});

function at(host: string, port: number): object {
  return { host, port };
}
