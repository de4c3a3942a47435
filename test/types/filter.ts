// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import type { ExceptionFilter } from '@nestjs/common';
import { LockExceptionFilter, LockInterceptor, type LockNotAcquiredError } from 'nestjs-redlock';

export const filters: ExceptionFilter[] = [
  new LockExceptionFilter(),
  new LockExceptionFilter({ lockedStatus: 503 }),
  // @ts-expect-error no such option
  new LockExceptionFilter({ status: 503 }),
  // @ts-expect-error a status is a number
  new LockExceptionFilter({ lockedStatus: '503' }),
];

export const answered = LockInterceptor('cart', {
  wait: 0,
  onLocked: (error) => {
    const locked: LockNotAcquiredError = error;
    return { resources: locked.resources, retryAfter: locked.retryAfter };
  },
});

// @ts-expect-error an interceptor names the status to send
LockInterceptor('cart', { onLocked: 'skip' });

// @ts-expect-error the ttl is one of the options
LockInterceptor('cart', '5s', { wait: 0 });
