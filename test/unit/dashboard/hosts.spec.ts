import { describe, expect, it } from '@jest/globals';
import { refuseOtherHosts, resolveHosts } from '../../../lib/dashboard/hosts.js';
import { resolveSettings } from '../../../lib/dashboard/options.js';
import { fc } from '../../support/properties.js';

const isServed = (headers: Readonly<Record<string, string>>, hosts: readonly string[] = []): boolean => {
  try {
    refuseOtherHosts(headers, hosts);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 403, message: expect.stringContaining('option hosts') });
    return false;
  }
};

describe('The option hosts', () => {
  it.each([[[]], ['admin.example.com'], [{}], [null]])('is refused as a whole: %j', (hosts) => {
    expect(() => resolveSettings({ hosts: hosts as never })).toThrow(
      "hosts must be a list of at least one host name, such as ['admin.example.com'], got",
    );
  });

  it.each([
    ...['http://admin.example.com', 'admin.example.com/locks', 'admin.example.com:3000', '[::1]:3000', '127.0.0.1:80'],
    ...['*', '*.example.com', '.example.com', 'admin.*', 'anna@example.com', 'a b', ' admin', '', '%61', 5, null],
    ...[undefined, 'a,b', '[::1', 'a?b', 'a#b', 'a\\b'],
  ])('is refused with the element %j', (host) => {
    expect(() => resolveSettings({ hosts: ['ok.example', host as never] })).toThrow(
      "hosts[1] must be the name of a host alone, such as 'admin.example.com', without scheme, port, path and wildcard",
    );
  });

  it('takes names as browsers write them', () => {
    const hosts = ['Admin.Example.com', 'ops', 'bücher.example', 'my_app', 'a.example.', '10.0.0.1', '::1', '[::1]'];
    expect(resolveHosts(hosts)).toEqual([
      ...['admin.example.com', 'ops', 'xn--bcher-kva.example', 'my_app', 'a.example', '10.0.0.1', '[::1]', '[::1]'],
    ]);
    expect(resolveHosts(undefined)).toBeUndefined();
  });
});

describe('The host of a request', () => {
  it.each([
    ...['127.0.0.1', '127.0.0.1:3000', '10.1.2.3', '0.0.0.0:80', '[::1]', '[::1]:3000', '[2001:db8::1]:443'],
    ...['localhost', 'LocalHost:3000', 'localhost.', 'app.localhost:8080'],
  ])('is accepted if no site can have it: %s', (host) => {
    expect(isServed({ host })).toBe(true);
    expect(isServed({ ':authority': host })).toBe(true);
  });

  it.each([
    ...['evil.example', 'evil.example:3000', 'localhost.evil.example', 'evil-localhost', 'notlocalhost', '.localhost'],
    ...['127.0.0.1.evil.example', '127.0.0.1@evil.example', 'evil.example#127.0.0.1', 'evil.example/127.0.0.1', ''],
    ...[
      'evil.example, 127.0.0.1',
      '127.0.0.1 evil.example',
      '[::1].evil.example',
      '[evil.example]',
      '127.0.0.1:x',
      'a:1:2',
    ],
  ])('is refused otherwise: %s', (host) => {
    expect(isServed({ host })).toBe(false);
    expect(isServed({ ':authority': host })).toBe(false);
    expect(isServed({ host: 'localhost', 'x-forwarded-host': host || 'evil.example' })).toBe(false);
    expect(isServed({ host: 'localhost', forwarded: `for=1.2.3.4;host="${host || 'evil.example'}"` })).toBe(false);
  });

  it('has to be there', () => {
    expect(isServed({})).toBe(false);
  });

  it('is accepted if the option names it, with any port and in any spelling', () => {
    for (const host of ['admin.example', 'Admin.Example:8443', 'admin.example.', 'admin.example:80']) {
      expect([host, isServed({ host }, ['admin.example'])]).toEqual([host, true]);
    }
    for (const host of ['example', 'x.admin.example', 'admin.example.evil.example', 'admin_example']) {
      expect([host, isServed({ host }, ['admin.example'])]).toEqual([host, false]);
    }
  });

  it('can only be refused by what a proxy forwards', () => {
    const hosts = ['admin.example'];
    expect(isServed({ host: '10.0.0.1', 'x-forwarded-host': 'admin.example' }, hosts)).toBe(true);
    expect(isServed({ host: '10.0.0.1', forwarded: 'for=1.2.3.4;proto=https;host=admin.example:443' }, hosts)).toBe(
      true,
    );
    expect(isServed({ host: '10.0.0.1', forwarded: 'for=1.2.3.4, for=2.3.4.5' }, hosts)).toBe(true);
    expect(isServed({ host: '10.0.0.1', 'x-forwarded-host': 'evil.example, admin.example' }, hosts)).toBe(false);
    expect(isServed({ host: '10.0.0.1', forwarded: 'host=admin.example, host=evil.example' }, hosts)).toBe(false);
    expect(isServed({ host: 'evil.example', 'x-forwarded-host': 'admin.example' }, hosts)).toBe(false);
  });

  it('is that of no registered name, however it is written', () => {
    const label = fc.stringMatching(/^[a-z][a-z\d-]{0,8}$/);
    const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join('.')}.example`);
    fc.assert(
      fc.property(name, fc.option(fc.nat(65_535)), (host, port) => {
        expect(isServed({ host: port === null ? host : `${host}:${port}` })).toBe(false);
      }),
    );
  });
});
