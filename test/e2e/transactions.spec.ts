import { describe, expect, it } from '@jest/globals';
import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { compileLibrary, start } from '../support/compiled.js';
import { boot, logs } from './support/applications.js';
import { Locks } from './support/locks.js';

type Work = (...args: unknown[]) => Promise<unknown>;
const dataSource = { transaction: async (work: () => Promise<unknown>) => work() };

/** A decorator as in typeorm-transactional: a function instead of the method, with its metadata and its name. */
const wrapping =
  (around: (work: Work) => Work): MethodDecorator =>
  (_, __, descriptor: PropertyDescriptor) => {
    const original = descriptor.value as Work;
    const wrapped = around(original);
    for (const key of Reflect.getMetadataKeys(original) as unknown[]) {
      Reflect.defineMetadata(key, Reflect.getMetadata(key, original), wrapped);
    }
    descriptor.value = Object.defineProperty(wrapped, 'name', { value: original.name });
  };
const InDataSource = () =>
  wrapping(
    (work) =>
      async function (this: unknown, ...args) {
        return dataSource.transaction(() => work.apply(this, args));
      },
  );
const Measured = () =>
  wrapping(
    (work) =>
      async function (this: unknown, ...args) {
        return work.apply(this, args);
      },
  );
const Marked = () => SetMetadata('my:transactional', true);
const Locked = WithLock('stock') as MethodDecorator;

/** What boot says of a method with these decorators, of which the first is the upper one. */
async function warningsOf(...decorators: MethodDecorator[]): Promise<string[]> {
  @Injectable()
  class Sales {
    @applyDecorators(...decorators.reverse())
    async sell(): Promise<void> {}
  }
  await boot({ imports: [new Locks().module()], providers: [Sales] });
  return logs.filter((line) => line.startsWith('warn'));
}

const WARNING =
  '@WithLock on Sales.sell: a decorator above it begins a transaction, which commits after the lock was released: the next ' +
  'holder may not see what was written. Write @WithLock above @Transactional';

const LOCK_FIRST = ['lock', 'begin', 'sell', 'commit', 'release'];
const TRANSACTION_FIRST = ['begin', 'lock', 'sell', 'release', 'commit'];

it('@Transactional of nestjs-cls commits before the release below @WithLock; above it, it commits later, and boots with a warning', async () => {
  const orders = [
    { names: ['Transactional', 'WithLock'], warnings: [WARNING], steps: TRANSACTION_FIRST },
    { names: ['Transactional', 'UseCls', 'WithLock'], warnings: [WARNING], steps: TRANSACTION_FIRST },
    { names: ['UseCls', 'Transactional', 'WithLock'], warnings: [WARNING], steps: TRANSACTION_FIRST },
    { names: ['UseCls', 'WithLock'], warnings: [], steps: ['lock', 'sell', 'release'] },
    { names: ['WithLock', 'Transactional'], warnings: [], steps: LOCK_FIRST },
    { names: ['UseCls', 'WithLock', 'Transactional'], warnings: [], steps: LOCK_FIRST },
  ];
  await using library = await compileLibrary();
  await using program = start(
    library,
    'transactions',
    orders.map(({ names }) => names),
  );
  expect(JSON.parse(await program.line())).toEqual(orders.map(({ warnings, steps }) => ({ warnings, steps })));
});

describe('A decorator that begins a transaction', () => {
  it.each([
    ['a function that calls a transaction', InDataSource],
    ['a mark', Marked],
  ])('boots with a warning above @WithLock, and without one below: %s', async (_, transactional) => {
    expect(await warningsOf(transactional(), Locked)).toEqual([`warn ${WARNING}`]);
    logs.length = 0;
    expect(await warningsOf(Locked, transactional())).toEqual([]);
  });
});

it.each([
  ['a function that calls the method', Measured()],
  ['a mark', SetMetadata('role', 'admin')],
])('An unrelated decorator above @WithLock boots without a warning: %s', async (_, above) => {
  expect(await warningsOf(above, Locked)).toEqual([]);
  expect(await warningsOf(above, Locked, InDataSource())).toEqual([]);
});
