import type { AbstractHttpAdapter } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';

/** The HTTP adapters of Nest, of which Express is the default. */
export const ADAPTERS = [
  { platform: 'Express', adapter: () => undefined },
  { platform: 'Fastify', adapter: (): AbstractHttpAdapter => new FastifyAdapter() },
] as const;
