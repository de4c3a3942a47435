import { isObservable } from 'rxjs';
import { begun, type LockContext, type LockScope } from './lock-scope.js';

export type Handler = (...args: never[]) => unknown;

const CALLS = new WeakMap<LockScope, HandlerCalls>();
// The call chains in which each handler may be called.
const CONTEXTS = new WeakMap<Handler, Set<LockContext>>();

// The calls of a handler under one lock. Nest shows an interceptor only what its subscription emits: not that the handler
// begins and, without a subscriber, not that it ends.
export class HandlerCalls {
  hasBegun = false;
  // What the last call gave.
  result: unknown;
  private running = 0;

  constructor(
    readonly handler: Handler,
    scope: LockScope,
    // If `check` throws, the handler does not run.
    private readonly on: { check(): void; settled(): void },
  ) {
    CALLS.set(scope, this);
    watch(handler, scope.context);
  }

  get isRunning(): boolean {
    return this.running > 0;
  }

  get gaveObservable(): boolean {
    return isObservable(this.result);
  }

  check(): void {
    this.on.check();
  }

  begin(): void {
    this.hasBegun = true;
    this.running++;
  }

  settle(result?: unknown): void {
    this.running--;
    this.result = result;
    this.on.settled();
  }
}

// Nest calls a handler as `handler.apply(instance, args)`, whatever runs it.
function watch(handler: Handler, context: LockContext): void {
  const known = CONTEXTS.get(handler);
  if (known) {
    known.add(context);
    return;
  }
  CONTEXTS.set(handler, new Set([context]));
  const call = (self: unknown, args: ArrayLike<unknown>): unknown => Function.prototype.apply.call(handler, self, args);
  const apply = function (this: unknown, self: unknown, args: ArrayLike<unknown>): unknown {
    // A Proxy writes the property into the method that it stands for, and calls that.
    if (this !== handler) return Reflect.apply(this as Handler, self, args);
    const all = callsOf(handler);
    return all.length === 0 ? call(self, args) : watched(all, () => call(self, args));
  };
  Reflect.defineProperty(handler, 'apply', { value: apply, configurable: true, writable: true });
}

// An interceptor that is listed twice locks twice.
function callsOf(handler: Handler): readonly HandlerCalls[] {
  const found: HandlerCalls[] = [];
  const collect = (scope: LockScope): boolean => {
    const calls = CALLS.get(scope);
    if (calls?.handler === handler) found.push(calls);
    return false;
  };
  for (const context of CONTEXTS.get(handler) ?? []) context.find(collect);
  // A handler that dispatches itself begins under the inner lock. If none is left to begin, it is tried again.
  const inner = found.filter(({ hasBegun }) => !hasBegun);
  return inner.length > 0 ? inner : found;
}

function watched(all: readonly HandlerCalls[], call: () => unknown): unknown {
  const settle = (result?: unknown): void => {
    for (const calls of all) calls.settle(result);
  };
  for (const calls of all) calls.check();
  for (const calls of all) calls.begin();
  let result: unknown;
  try {
    result = begun(call());
  } catch (error) {
    settle();
    throw error;
  }
  if (result instanceof Promise) result.then(settle, () => settle());
  else settle(result);
  return result;
}
