import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const FOLDER = join(import.meta.dirname, '../../../lib/redlock');
/** What the rooms beside the algorithm are about. */
const ROOMS = /\b(?:permit|shared|home|queue|fenc(?:e|ing)|state|guard|observer|notif(?:y|ication)|ioredis)s?\b/i;
const LONGEST = 256;

it('The algorithm mentions no room, and imports nothing but itself', () => {
  const files = readdirSync(FOLDER);
  expect(files.length).toBeGreaterThan(10);
  const found = files.flatMap((name) =>
    readFileSync(join(FOLDER, name), 'utf8')
      .split('\n')
      .filter((line) => ROOMS.test(line) || /from '(?!\.\/)/.test(line))
      .map((line) => `${name}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});

it('No file of the algorithm is longer than one sitting', () => {
  const lengths = readdirSync(FOLDER).map((name) => [
    name,
    readFileSync(join(FOLDER, name), 'utf8').split('\n').length - 1,
  ]);
  expect(lengths.filter(([, length]) => Number(length) > LONGEST)).toEqual([]);
});
