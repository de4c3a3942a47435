// What the package exports and what it hides, for ESM and for CommonJS. Prints what it has shown.
import { equal, ok, rejects, throws } from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { MATRIX_BARE } = process.env;
const PRIVATE = [
  'dist/esm/index.js',
  'dist/esm/chunks/table.js',
  'dist/cjs/index.js',
  'lib/index.ts',
  'redlock/redlock.js',
];
const OPTIONAL = { terminus: '@nestjs/terminus', opentelemetry: '@opentelemetry/api', schedule: '@nestjs/schedule' };
const shown = [];

for (const path of PRIVATE) {
  const refused = { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' };
  await rejects(import(`nestjs-redlock/${path}`), refused);
  throws(() => require(`nestjs-redlock/${path}`), refused);
}
equal(require('nestjs-redlock/package.json').name, 'nestjs-redlock');
shown.push('no deep imports');

for (const subpath of [
  '',
  '/testing',
  '/dashboard',
  '/sql',
  '/leader',
  ...(MATRIX_BARE ? [] : ['/terminus', '/opentelemetry', '/schedule']),
]) {
  const imported = await import(`nestjs-redlock${subpath}`);
  const required = require(`nestjs-redlock${subpath}`);
  const names = Object.keys(imported).filter((name) => name !== 'default' && name !== 'module.exports');
  ok(names.length > 0);
  for (const name of names) equal(required[name], imported[name], `${name} is the same to import and to require`);
}
shown.push('one copy');

if (MATRIX_BARE) {
  for (const [subpath, peer] of Object.entries(OPTIONAL)) {
    const named = (error) => /MODULE_NOT_FOUND$/.test(error.code) && error.message.includes(`'${peer}'`);
    // In this order: after a failed import, Node 20.19 and 22.12 treat the module as one that is still being imported.
    throws(() => require(`nestjs-redlock/${subpath}`), named);
    await rejects(import(`nestjs-redlock/${subpath}`), named);
  }
  shown.push('missing peers are named');
}
console.log(JSON.stringify(shown));
