import { describe, expect, it } from '@jest/globals';
import { RedlockConfigError } from '../../../lib/core/errors.js';
import { redisMasters } from '../../../lib/redis/master-source.js';
import { addressesIn, redactAddress } from '../../../lib/redis/url-parts.js';
import { contextOf } from '../../support/context.js';
import { fc } from '../../support/properties.js';

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

  it('is refused with what to write in its place', () => {
    for (const address of ['127.0.0.1:6380,password=ab@S3cR3tPw', 'h:1;pwd=S3cR3tPw', 'host=h password=S3cR3tPw']) {
      expect(refusalOf(address)).toContain('redis://user:password@host:6379');
      expect(refusalOf(address)).not.toContain('S3cR3tPw');
    }
  });
});
