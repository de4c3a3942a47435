import { ConflictException } from '@nestjs/common';

/** A later holder of the lock has used the row, so the writer has lost its lock meanwhile. */
export class StaleWriteError extends ConflictException {
  constructor(item: string, token: number) {
    super(`${item}: the lock was lost before the write, and another process has the row now (token ${token})`);
  }
}
