import { expect, it, jest } from '@jest/globals';
import { contextOf } from '../../support/context.js';

// As an automatic mock: methods that give nothing, and no fields.
class Mocked {
  on(): void {}
  connect(): void {}
}

jest.unstable_mockModule('ioredis', () => ({ Redis: Mocked, Cluster: Mocked }));
const { masterFrom } = await import('../../../lib/redis/master-source.js');

it.each(['redis://a', 'redis+cluster://a:1,b:1'])('A mock instead of ioredis is named for %s', (url) =>
  expect(() => masterFrom('masters[0]', url, contextOf())).toThrow(
    "masters[0] needs ioredis, and this process has a mock of it: remove jest.mock('ioredis')",
  ),
);
