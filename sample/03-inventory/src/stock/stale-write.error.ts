import { ConflictException } from '@nestjs/common';

/** The row has been claimed with a larger fencing token: whoever wrote has lost the lock meanwhile. */
export class StaleWriteError extends ConflictException {
  constructor(item: string, token: number) {
    super(`${item}: the lock was lost before the write, and somebody else has the row now (token ${token})`);
  }
}
