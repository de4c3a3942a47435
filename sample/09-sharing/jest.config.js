import preset from '../../jest.samples.config.js';

/** @type {import('jest').Config} */
export default { ...preset, rootDir: import.meta.dirname };
