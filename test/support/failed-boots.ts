import 'reflect-metadata';
import {
  Controller,
  type DynamicModule,
  Get,
  Injectable,
  Module,
  type ModuleMetadata,
  type NestModule,
} from '@nestjs/common';
import { LockService, RedlockModule } from '../../lib/index.js';

const reject = (): never => {
  throw new Error('the database is down');
};

@Controller()
class ThrowingController {
  constructor() {
    reject();
  }

  @Get()
  list(): void {}
}

@Injectable()
class OnInit {
  onModuleInit = async () => Promise.reject(new Error('the database is down'));
}

@Injectable()
class OnBootstrap {
  onApplicationBootstrap = async () => Promise.reject(new Error('the database is down'));
}

@Injectable()
class OnInitUnderLock {
  constructor(private readonly locks: LockService) {}

  async onModuleInit(): Promise<void> {
    await this.locks.withLock('migration', reject);
  }
}

@Module({})
class Routes implements NestModule {
  configure(): void {
    reject();
  }
}

/** What ends the boot of an application beside two lock services. */
export const FAILURES: Readonly<Record<string, (url: string) => ModuleMetadata>> = {
  'a factory rejects': () => ({
    providers: [
      { provide: 'database', inject: [LockService], useFactory: async () => Promise.reject(new Error('no')) },
    ],
  }),
  'a controller throws': () => ({ controllers: [ThrowingController] }),
  'a hook onModuleInit rejects': () => ({ providers: [OnInit] }),
  'a hook onModuleInit rejects in its lock': () => ({ providers: [OnInitUnderLock] }),
  'a hook onApplicationBootstrap rejects': () => ({ providers: [OnBootstrap] }),
  'middleware cannot be configured': () => ({ imports: [Routes] }),
  'a third lock service cannot connect': () => ({
    imports: [RedlockModule.forRoot({ name: 'third', masters: ['redis://127.0.0.1:1'], connectTimeout: '200ms' })],
  }),
  'a third lock service has invalid options': (url) => ({
    imports: [RedlockModule.forRoot({ name: 'third', masters: [url], ttl: 5 })],
  }),
};

/** Two lock services, one of which gets its options when the other has begun, and what ends the boot. */
export function failingApp(url: string, failure: ModuleMetadata): DynamicModule {
  @Module({})
  class App {}
  const options = { masters: [url], restartGuard: false };
  const later = async () => {
    await new Promise(setImmediate);
    return options;
  };
  return {
    ...failure,
    module: App,
    imports: [
      RedlockModule.forRoot(options),
      RedlockModule.forRootAsync({ name: 'second', useFactory: later }),
      ...(failure.imports ?? []),
    ],
  };
}
