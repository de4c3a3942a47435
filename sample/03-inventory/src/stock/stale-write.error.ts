import { ConflictException } from '@nestjs/common';

/** The writer has lost its lock meanwhile, and a later holder may have used the row. */
export class StaleWriteError extends ConflictException {
  constructor(item: string) {
    super(`${item}: the lock was lost before the write, and another process may have the row now`);
  }
}
