import preset from '../jest.preset.js';

/** @type {import('jest').Config} */
export default { ...preset, rootDir: import.meta.dirname };
