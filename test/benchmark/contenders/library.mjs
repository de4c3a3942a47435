export * from '../../../dist/esm/index.js';
