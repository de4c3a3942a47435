// Boots methods under decorators of nestjs-cls, and prints what boot says of them and in which order a call locks and begins a
// transaction. Jest on Node 20 cannot load that package.
import { ClsPluginTransactional, type TransactionalAdapter, Transactional } from '@nestjs-cls/transactional';
import { applyDecorators, ConsoleLogger, Logger, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsModule, ClsModuleOptions, UseCls } from 'nestjs-cls';
import { type LockObserver, RedlockModule, WithLock } from '../../lib/index.js';

const DECORATORS: Record<string, () => MethodDecorator> = {
  Transactional,
  UseCls: UseCls as () => MethodDecorator,
  WithLock: () => WithLock('stock'),
};

/** Of a method under these decorators, of which the first is the upper one. */
function sales(names: readonly string[], steps: string[]): Type<{ sell(): Promise<void> }> {
  const decorators = names.map((name) => (DECORATORS[name] as () => MethodDecorator)());
  class Sales {
    @applyDecorators(...decorators.reverse())
    async sell(): Promise<void> {
      steps.push('sell');
    }
  }
  return Sales;
}

/** Transactions that only note when they begin and commit. */
const transactions = (steps: string[]): TransactionalAdapter<object, object, object> => ({
  connection: {},
  optionsFactory: () => ({
    wrapWithTransaction: async (_options, work: () => Promise<unknown>, setTransaction) => {
      setTransaction({});
      steps.push('begin');
      const result = await work();
      steps.push('commit');
      return result;
    },
    getFallbackInstance: () => ({}),
  }),
});

class Recorder extends ConsoleLogger {
  readonly warnings: unknown[] = [];

  override log(): void {}

  override warn(message: unknown): void {
    this.warnings.push(message);
  }
}

const steps: string[] = [];
const results: { type: Type<{ sell(): Promise<void> }>; warnings: unknown[]; steps?: string[] }[] = [];
for (const names of JSON.parse(process.argv[2] ?? '') as string[][]) {
  const type = sales(names, steps);
  // What is read after the definition of the class says nothing.
  await Promise.resolve();
  const recorder = new Recorder();
  Logger.overrideLogger(recorder);
  const imports = [RedlockModule.forRoot({ masters: 'memory' })];
  @Module({ imports, providers: [type] })
  class Application {}
  await (await NestFactory.createApplicationContext(Application)).close();
  results.push({ type, warnings: recorder.warnings });
}

// Only one application of a process may have transactions.
const observer: LockObserver = {
  acquiring: () => ({ granted: () => void steps.push('lock'), ended: () => void steps.push('release') }),
};
Logger.overrideLogger(false);
const cls = new ClsModuleOptions();
cls.plugins = [new ClsPluginTransactional({ adapter: transactions(steps) })];
@Module({
  imports: [RedlockModule.forRoot({ masters: 'memory', observers: [observer] }), ClsModule.forRoot(cls)],
  providers: results.map(({ type }) => type),
})
class Selling {}
const app = await NestFactory.createApplicationContext(Selling);
for (const result of results) {
  await app.get(result.type).sell();
  result.steps = steps.splice(0);
}
await app.close();
process.stdout.write(`${JSON.stringify(results.map(({ warnings, steps }) => ({ warnings, steps })))}\n`);
