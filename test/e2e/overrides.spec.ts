import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Scope, type Type, UseInterceptors } from '@nestjs/common';
import { type LockedMethodOptions, LockInterceptor, WithLock } from 'nestjs-redlock';
import { boot, logs } from './support/applications.js';
import { Locks } from './support/locks.js';

const symbol = Symbol('run');

class Importer {
  @WithLock('import')
  async run(): Promise<void> {}

  @WithLock('other')
  async [symbol](): Promise<void> {}
}

class Unlocked extends Importer {
  override async run(): Promise<void> {}
}

const warnings = () => logs.filter((line) => line.startsWith('warn'));
const bootWith = (...providers: NonNullable<Parameters<typeof boot>[0]['providers']>) =>
  boot({ imports: [new Locks().module()], providers });
const warning = (name: string, base = 'Importer.run') =>
  `warn @WithLock on ${base}: ${name} overrides it without the decorator, and runs without the lock. Repeat @WithLock ` +
  `on ${name}, or call the overridden method`;

describe('A method that overrides a decorated one without the decorator boots with a warning', () => {
  it.each([
    ['a provider', Unlocked],
    ['a request-scoped provider', { provide: 'IMPORT', useClass: Unlocked, scope: Scope.REQUEST }],
    ['a transient provider', { provide: 'IMPORT', useClass: Unlocked, scope: Scope.TRANSIENT }],
    ['a value', { provide: 'IMPORT', useValue: new Unlocked() }],
    ['the result of a factory', { provide: 'IMPORT', useFactory: () => new Unlocked() }],
    ['a proxy', { provide: 'IMPORT', useFactory: () => new Proxy(new Unlocked(), {}) }],
  ])('in %s', async (_, provider) => {
    await bootWith(provider);
    expect(warnings()).toEqual([warning('Unlocked.run')]);
  });

  it('once, although several classes inherit it, a controller, too', async () => {
    @Injectable()
    class One extends Unlocked {}
    @Controller()
    class Another extends Unlocked {}
    await boot({ imports: [new Locks().module()], providers: [One], controllers: [Another] });
    expect(warnings()).toEqual([warning('Unlocked.run')]);
  });

  it('that names the nearest decorated one', async () => {
    class Middle extends Importer {
      @WithLock('middle')
      override async run(): Promise<void> {}
    }
    @Injectable()
    class Last extends Middle {
      override async run(): Promise<void> {}
    }
    await bootWith(Last);
    expect(warnings()).toEqual([warning('Last.run', 'Middle.run')]);
  });

  it('that calls one between them, which runs without the lock, too', async () => {
    @Injectable()
    class Last extends Unlocked {
      override async run(): Promise<void> {
        await super.run();
      }
    }
    await bootWith(Last);
    expect(warnings()).toEqual([warning('Last.run')]);
  });

  it('not if it calls the decorated one, or another decorator locks it', async () => {
    @Injectable()
    class Calling extends Importer {
      override async run(): Promise<void> {
        await super.run.call(this);
      }

      override async [symbol](): Promise<void> {
        await super[symbol]();
      }
    }
    @Controller()
    class Intercepted extends Importer {
      @Get()
      @UseInterceptors(LockInterceptor('import'))
      override async run(): Promise<void> {}
    }
    await boot({ imports: [new Locks().module()], providers: [Calling], controllers: [Intercepted] });
    expect(warnings()).toEqual([]);
  });

  it('if its class is the result of a mixin, and its name a symbol', async () => {
    const mixed = (base: Type<Importer>): Type<Importer> =>
      class Mixed extends base {
        override async [symbol](): Promise<void> {}
      };
    await bootWith({ provide: 'IMPORT', useClass: mixed(Importer) });
    expect(warnings()).toEqual([warning('Mixed.Symbol(run)', 'Importer.Symbol(run)')]);
  });

  it('if it calls another method whose name begins like its own', async () => {
    class Base {
      @WithLock('save')
      async save(): Promise<void> {}

      async saveAll(): Promise<void> {}
    }
    class Several extends Base {
      override async save(): Promise<void> {
        await super.saveAll();
      }
    }
    await bootWith(Several);
    expect(warnings()).toEqual([warning('Several.save', 'Base.save')]);
  });

  it('if it is no handler in a class under LockInterceptor', async () => {
    @Controller()
    @UseInterceptors(LockInterceptor('import'))
    class Intercepted extends Unlocked {
      @Get()
      list(): void {}
    }
    await boot({ imports: [new Locks().module()], controllers: [Intercepted] });
    expect(warnings()).toEqual([warning('Unlocked.run')]);
  });

  it('if it is a field', async () => {
    class Field extends Importer {
      override run = async (): Promise<void> => {};
    }
    await bootWith(Field);
    expect(warnings()).toEqual([warning('Field.run')]);
  });

  it('if it is an accessor', async () => {
    class Accessor extends Importer {}
    Object.defineProperty(Accessor.prototype, 'run', { get: () => () => undefined });
    await bootWith({ provide: 'IMPORT', useClass: Accessor });
    expect(warnings()).toEqual([warning('Accessor.run')]);
  });
});

describe('Nothing is said of a method', () => {
  it.each<[string, LockedMethodOptions]>([
    ['that repeats the decorator', {}],
    ['that repeats it for another service', { service: 'billing' }],
  ])('%s', async (_, options) => {
    @Injectable()
    class Locked extends Importer {
      @WithLock('csv', options)
      override async run(): Promise<void> {}
    }
    await boot({ imports: [new Locks().module(), new Locks(3, { name: 'billing' }).module()], providers: [Locked] });
    expect(warnings()).toEqual([]);
  });

  it.each([
    ['bound', (run: () => Promise<void>) => run],
    ['wrapped', (run: () => Promise<void>) => async () => run()],
  ])('that its own constructor has %s', async (_, change) => {
    class Own {
      constructor() {
        this.run = change(this.run.bind(this));
      }

      @WithLock('import')
      async run(): Promise<void> {}
    }
    await bootWith(Own);
    expect(warnings()).toEqual([]);
  });

  it('that an extending class has bound, mocked, or replaced by one that calls it', async () => {
    class Bound extends Importer {
      constructor() {
        super();
        this.run = this.run.bind(this);
      }
    }
    class Mocked extends Importer {
      override run = jest.fn(async () => undefined);
    }
    class Calling extends Importer {
      override run = async (): Promise<void> => super.run();
    }
    await bootWith(Bound, Mocked, Calling);
    expect(warnings()).toEqual([]);
  });

  it('that is a handler in a class under LockInterceptor', async () => {
    @Controller()
    @UseInterceptors(LockInterceptor('import'))
    class Intercepted extends Importer {
      @Get()
      override async run(): Promise<void> {}
    }
    await boot({ imports: [new Locks().module()], controllers: [Intercepted] });
    expect(warnings()).toEqual([]);
  });
});

it('A decorator above @WithLock that calls what the class has, and not what it is given, calls the locked method', async () => {
  type Method = (...args: unknown[]) => unknown;
  const counted: MethodDecorator = (target, property, descriptor) => {
    const original = Reflect.get(target, property) as Method;
    Reflect.set(descriptor, 'value', function (this: unknown, ...args: unknown[]): unknown {
      return Reflect.apply(original, this, args);
    });
  };
  const locks = new Locks();
  @Injectable()
  class Counted {
    @counted
    @WithLock('count')
    async run(): Promise<boolean> {
      return locks.held;
    }
  }
  const app = await boot({ imports: [locks.module()], providers: [Counted] });
  expect(await app.get(Counted).run()).toBe(true);
});
