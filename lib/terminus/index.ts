/**
 * Health check for `@nestjs/terminus`, which is an optional peer of this package.
 *
 * @packageDocumentation
 */
export {
  type RedlockHealthDetails,
  RedlockHealthIndicator,
  type RedlockHealthOptions,
} from './redlock-health.indicator.js';
export { RedlockHealthModule } from './redlock-health.indicator.js';
