// Keeps what a run installs for the next run. The cache is outside the project: an application below it would find the
// project's own packages, and a missing package would never be noticed.
import { createHash } from 'node:crypto';
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../../scripts/run.mjs';

const USER = process.getuid?.() ?? 0;
const SHARED = join(tmpdir(), `nestjs-redlock-matrix-${USER}`);
mkdirSync(SHARED, { recursive: true, mode: 0o700 });
// Programs are started from here, so no other user may have put them there.
if (statSync(SHARED).uid !== USER) throw new Error(`${SHARED} belongs to another user`);

/** The cache of this clone alone. */
export const OWN = join(SHARED, createHash('sha256').update(root).digest('hex').slice(0, 12));

/** Fills a folder that never changes once it is complete: its name contains the version. All clones share it. */
export async function keep(name, fill) {
  const folder = join(SHARED, name);
  if (await readFile(join(folder, '.complete')).catch(() => undefined)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  const draft = await mkdtemp(`${folder}-`);
  await fill(draft);
  await writeFile(join(draft, '.complete'), 'yes');
  await rename(draft, folder);
  return folder;
}

/** Brings a folder up to date, unless that has been done for the same key. */
export async function refresh(folder, key, update) {
  const stamp = join(folder, '.up-to-date');
  await mkdir(folder, { recursive: true });
  if ((await readFile(stamp, 'utf8').catch(() => undefined)) === key) return;
  await rm(stamp, { force: true });
  await update();
  await writeFile(stamp, key);
}
