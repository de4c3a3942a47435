import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import {
  LockService,
  RedlockModule,
  type RedlockModuleOptions,
  type RedlockOptionsFactory,
  WithLock,
} from 'nestjs-redlock';
import { boot, closeAll } from './support/applications.js';

afterEach(closeAll);

@Injectable()
class Orders {
  @WithLock('order', { ttl: '10s', wait: 0 })
  async ship(): Promise<string> {
    return 'shipped';
  }
}

describe('Without masters', () => {
  const disabled = { enabled: false } as const;
  class Options implements RedlockOptionsFactory {
    createRedlockOptions() {
      return disabled;
    }
  }

  it.each([
    ['forRoot', RedlockModule.forRoot(disabled)],
    ['forRootAsync with a factory', RedlockModule.forRootAsync({ useFactory: () => ({ enabled: false }) })],
    ['forRootAsync with a class', RedlockModule.forRootAsync({ useClass: Options })],
  ])('%s and `enabled: false` boot, and everything runs without locks', async (_, redlock) => {
    const app = await boot({ imports: [redlock], providers: [Orders] });
    await using _lock = await app.get(LockService).acquire('order');
    await expect(app.get(Orders).ship()).resolves.toBe('shipped');
  });

  it('a service that locks does not boot', async () => {
    const options = { enabled: true } as RedlockModuleOptions;
    await expect(boot({ imports: [RedlockModule.forRoot(options)] })).rejects.toMatchObject({ option: 'masters' });
  });
});
