import { Controller, Get, HttpCode, Param, Post, StreamableFile, UseInterceptors } from '@nestjs/common';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { ExportsService } from './exports.service.js';

@Controller('exports/:id')
export class ExportsController {
  constructor(private readonly exports: ExportsService) {}

  /**
   * Holds the lock until the last row has been written, or until the client has disconnected. `@WithLock` would release
   * it too early, because the method returns when the stream begins.
   */
  @Get()
  @UseInterceptors(
    LockInterceptor((context) => keyOf(context.switchToHttp().getRequest<Request>().params.id), { ttl: '2s', wait: 0 }),
  )
  read(@Param('id') id: string): StreamableFile {
    return new StreamableFile(this.exports.rows(id), { type: 'text/csv' });
  }

  /** Holds the lock until the promise has settled. The key is the same, so an export is not read during a refresh. */
  @Post('refresh')
  @HttpCode(204)
  @WithLock((id: string) => keyOf(id), { ttl: '2s', wait: 0 })
  async refresh(@Param('id') id: string): Promise<void> {
    await this.exports.refresh(id);
  }
}

/** The part of a request that the key needs. It is the same in Fastify and Express. */
interface Request {
  params: { id: string };
}

function keyOf(id: string): string {
  return `export:${id}`;
}
