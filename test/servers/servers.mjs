// `npm run servers`: provides one real server of every supported release, from Debian's packages. Nothing is installed:
// apt works in a folder of its own, the packages are unpacked below .cache, and each server starts with the libc of its
// suite.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ensureProgram, onPath } from '../../scripts/programs.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { versionOfServer } from '../../scripts/redis-servers.mjs';
import { root } from '../../scripts/run.mjs';

const MIRROR = 'http://deb.debian.org/debian';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const CACHE = join(root, '.cache/servers');

/** The suites of Debian that have a server, oldest release first. Debian decides their versions. */
const SUITES = {
  bookworm: ['redis'],
  trixie: ['redis', 'valkey'],
  sid: ['redis', 'valkey'],
};

/** Debian's names for a processor and for the folders of its libraries. */
const ARCHITECTURES = { x64: ['amd64', 'x86_64-linux-gnu'], arm64: ['arm64', 'aarch64-linux-gnu'] };

/**
 * Time limit in milliseconds for each step of apt and dpkg: a slow mirror takes a minute for all packages of a suite.
 */
const PATIENCE = 300_000;

/**
 * Downloads the missing servers, or all of them with `update`. Resolves with the name and version, the source and the
 * program of each. Rejects with instructions if they cannot be provided.
 */
export async function ensureServers({ update = false } = {}) {
  const architecture = ARCHITECTURES[process.arch];
  const missing = ['apt-get', 'dpkg-deb'].filter((program) => !onPath(program));
  if (process.platform !== 'linux' || !architecture || missing.length > 0) {
    const here = [process.platform, process.arch, ...missing.map((program) => `without ${program}`)].join(' ');
    throw new Error(
      `The servers come from Debian's packages for Linux on x64 or arm64, and this is ${here}. Run this in a container of Debian`,
    );
  }
  const [debian, multiarch] = architecture;
  for (const suite of Object.keys(SUITES)) {
    if (update || !existsSync(join(CACHE, suite, 'packages'))) await download(suite, debian);
  }
  const servers = Object.entries(SUITES).flatMap(([suite, names]) => names.map((name) => ({ suite, name })));
  return Promise.all(servers.map((server) => launchable(server, multiarch)));
}

/** Fills a temporary folder, and moves it into place when it is complete. */
async function download(suite, architecture) {
  const keyring = await ensureProgram(
    "keyring of Debian's archive",
    () => (existsSync(KEYRING) ? KEYRING : undefined),
    { 'apt-get': ['debian-archive-keyring'] },
    MIRROR,
  );
  await mkdir(CACHE, { recursive: true });
  const draft = await mkdtemp(join(CACHE, `${suite}-`));
  try {
    const apt = await aptIn(
      join(draft, 'apt'),
      `deb [arch=${architecture} signed-by=${keyring}] ${MIRROR} ${suite} main`,
    );
    console.log(`Debian ${suite}: reading the list of packages`);
    await apt('update');
    const packages = packagesOf(await apt('install', '--simulate', ...toolsOf(suite)));
    console.log(`Debian ${suite}: downloading ${packages.length} packages`);
    await apt('download', ...packages);
    for (const file of await readdir(join(draft, 'apt'))) {
      if (file.endsWith('.deb')) await execute('dpkg-deb', ['-x', join(draft, 'apt', file), join(draft, 'root')]);
    }
    await rm(join(draft, 'apt'), { recursive: true });
    await rm(join(draft, 'root/usr/share'), { recursive: true });
    await writeFile(join(draft, 'packages'), `${packages.join('\n')}\n`);
    await rm(join(CACHE, suite), { recursive: true, force: true });
    await rename(draft, join(CACHE, suite));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Creates an apt configuration with one source and no installed packages. */
async function aptIn(folder, source) {
  await mkdir(join(folder, 'lists/partial'), { recursive: true });
  await mkdir(join(folder, 'archives/partial'), { recursive: true });
  const list = join(folder, 'sources.list');
  await writeFile(list, `${source}\n`);
  const settings = [
    ...[`Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=-', 'Dir::Etc::preferencesparts=-'],
    ...[`Dir::State=${folder}`, 'Dir::State::status=/dev/null', `Dir::Cache=${folder}`],
    // Otherwise apt succeeds with old lists, or none, when it cannot reach the mirror.
    ...['APT::Update::Error-Mode=any', 'Acquire::Retries=3'],
    // The user that apt switches to when root runs it may not write here.
    ...['APT::Sandbox::User=root', 'APT::Install-Recommends=false'],
  ].flatMap((setting) => ['-o', setting]);
  return async (...args) => {
    try {
      return await execute('apt-get', [...settings, '-q', ...args], { cwd: folder });
    } catch (error) {
      const where = source.replace(/^deb \[.*?\] /, '');
      throw new Error(`apt-get ${args[0]} failed for ${where}. Is the mirror within reach?\n${error.stderr}`.trim(), {
        cause: error,
      });
    }
  };
}

function toolsOf(suite) {
  // These packages contain the server, too. Unlike redis-server and valkey-server, they need no init system.
  return SUITES[suite].map((name) => `${name}-tools`);
}

/**
 * The servers and libraries among the packages that apt would install, as `name=version`. Other programs are not
 * needed.
 */
function packagesOf(simulation) {
  return [...simulation.matchAll(/^Inst (\S+) \((\S+)/gm)]
    .map(([, name, version]) => ({ name, version }))
    .filter(({ name }) => /^(?:lib|lua|zlib|(?:redis|valkey)-tools$)/.test(name))
    .map(({ name, version }) => `${name}=${version}`)
    .sort();
}

/** Writes the program that starts a server, with the current path of the checkout. */
async function launchable({ suite, name }, multiarch) {
  const folder = join(CACHE, suite, 'root');
  const libraries = ['lib', 'usr/lib'].map((parent) => join(folder, parent, multiarch)).filter(existsSync);
  const loader = (await Promise.all(libraries.map(loaderIn))).find(Boolean);
  const program = join(CACHE, suite, `${name}-server`);
  // The binary has the name of a checker, and acts according to the name by which it is started.
  const words = [loader, '--argv0', `${name}-server`, '--library-path', libraries.join(':')];
  const binary = join(folder, 'usr/bin', `${name}-check-rdb`);
  await writeFile(program, `#!/bin/sh\nexec ${[...words, binary].map((word) => `'${word}'`).join(' ')} "$@"\n`);
  await chmod(program, 0o755);
  return { name: await versionOfServer(program), source: `Debian ${suite}`, program };
}

async function loaderIn(folder) {
  const file = (await readdir(folder)).find((each) => /^ld-linux.*\.so/.test(each));
  return file && join(folder, file);
}

async function execute(command, args, options) {
  const env = { ...process.env, LC_ALL: 'C' };
  const { stdout } = await promisify(execFile)(command, args, {
    ...options,
    env,
    timeout: PATIENCE,
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = optionsOf({ options: { update: { type: 'boolean', default: false } } });
  try {
    const servers = await ensureServers(values);
    for (const { name, source, program } of servers) console.log(`${name.padEnd(16)}${source.padEnd(18)}${program}`);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
