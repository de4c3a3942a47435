// Dates the newest entry of the changelog. `npm version` runs this after it has written the new version.
import { readFileSync, writeFileSync } from 'node:fs';
import { dateChangelog } from './problems.mjs';

const file = new URL('../../CHANGELOG.md', import.meta.url);
const today = new Date().toISOString().slice(0, 10);
writeFileSync(file, dateChangelog(readFileSync(file, 'utf8'), process.env.npm_package_version, today));
