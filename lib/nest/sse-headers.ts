import type { ExecutionContext } from '@nestjs/common';
import { executionAsyncResource } from 'node:async_hooks';

export function isSse(context: ExecutionContext): boolean {
  return Reflect.hasMetadata('__sse__', context.getHandler());
}

// Nest sends the headers of server-sent events, and 200 with them, by a timer of 0 ms after it has subscribed, unless the
// response has ended. A call that waits longer for its lock could not be refused with a status, so it seems to have ended
// until then. Returns what ends that, and lets the timer run again that came too early.
export function holdSseHeaders(response: object): () => void {
  let timer: Partial<NodeJS.Timeout> | undefined;
  const writableEnded = (): boolean => {
    timer ??= executionAsyncResource();
    return true;
  };
  Object.defineProperty(response, 'writableEnded', { get: writableEnded, configurable: true });
  return () => {
    if (Object.getOwnPropertyDescriptor(response, 'writableEnded')?.get !== writableEnded) return;
    Reflect.deleteProperty(response, 'writableEnded');
    timer?.refresh?.();
  };
}
