/**
 * Health check for `@nestjs/terminus`, which is an optional peer of this package.
 *
 * @packageDocumentation
 */
export {
  type RedlockHealthDetails,
  RedlockHealthIndicator,
  RedlockHealthModule,
  type RedlockHealthOptions,
} from './redlock-health.indicator.js';
