import 'reflect-metadata';
import { methodOf } from './lock-declarations.js';

// Libraries whose decorator is a Proxy without a mark, as those of unrelated decorators are.
const LIBRARY = /[\\/](?:@nestjs-cls[\\/]transactional|typeorm-transactional)[\\/]/;
// In the code of a function that stands in for the method, such as `dataSource.transaction(() => ...)`.
const BEGINS = /\.\$?transaction(?:al)?\(|(?:with|in|commit)Transaction\b/i;
const MARK = /transactional/i;

interface DecoratedMethod {
  readonly target: object;
  readonly property: string | symbol;
  // Before and after it was decorated.
  readonly method: object;
  readonly locked: object;
}

// Whether a decorator above ours begins a transaction, which then commits after the lock was released. `handler` is that of the
// Proxy `locked`.
export function watchTransactions(handler: ProxyHandler<never>, decorated: DecoratedMethod): () => boolean {
  const { target, property, method, locked } = decorated;
  let isRead = false;
  // Decorators copy the metadata of what they replace. Reading it, reflect-metadata asks for the prototype: who reads it while the
  // class is being defined stands above.
  handler.getPrototypeOf = (original) => {
    isRead ||= LIBRARY.test(new Error().stack ?? '');
    return Reflect.getPrototypeOf(original);
  };
  void Promise.resolve().then(() => delete handler.getPrototypeOf);
  return () => {
    const outermost = methodOf(target, property) ?? locked;
    if (isRead || (outermost !== locked && BEGINS.test(Function.prototype.toString.call(outermost)))) return true;
    const below = new Set(Reflect.getOwnMetadataKeys(method));
    return Reflect.getOwnMetadataKeys(outermost).some((key) => !below.has(key) && MARK.test(String(key)));
  };
}
