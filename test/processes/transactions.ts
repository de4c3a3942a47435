// Boots methods under decorators of nestjs-cls and prints what boot says of them. Jest on Node 20 cannot load that package.
import { Transactional } from '@nestjs-cls/transactional';
import { applyDecorators, ConsoleLogger, Logger, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { UseCls } from 'nestjs-cls';
import { RedlockModule, WithLock } from '../../lib/index.js';

const DECORATORS: Record<string, () => MethodDecorator> = {
  Transactional,
  UseCls: UseCls as () => MethodDecorator,
  WithLock: () => WithLock('stock'),
};

/** Of a method under these decorators, of which the first is the upper one. */
function sales(names: readonly string[]): Type {
  const decorators = names.map((name) => (DECORATORS[name] as () => MethodDecorator)());
  class Sales {
    @applyDecorators(...decorators.reverse())
    async sell(): Promise<void> {}
  }
  return Sales;
}

class Recorder extends ConsoleLogger {
  readonly warnings: unknown[] = [];

  override log(): void {}

  override warn(message: unknown): void {
    this.warnings.push(message);
  }
}

const results: unknown[] = [];
for (const names of JSON.parse(process.argv[2] ?? '') as string[][]) {
  const providers = [sales(names)];
  // What is read after the definition of the class says nothing.
  await Promise.resolve();
  const recorder = new Recorder();
  Logger.overrideLogger(recorder);
  const imports = [RedlockModule.forRoot({ masters: 'memory' })];
  @Module({ imports, providers })
  class Application {}
  await (await NestFactory.createApplicationContext(Application)).close();
  results.push(recorder.warnings);
}
process.stdout.write(`${JSON.stringify(results)}\n`);
