// The package is "type": "module", so Node would load dist/cjs as ESM without a package.json of its own.
import { writeFileSync } from 'node:fs';

writeFileSync(new URL('../dist/cjs/package.json', import.meta.url), '{ "type": "commonjs" }\n');
