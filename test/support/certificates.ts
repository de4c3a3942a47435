import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensureProgram, onPath } from '../../scripts/programs.mjs';

const run = promisify(execFile);
const PACKAGES = { 'apt-get': ['openssl'], apk: ['openssl'], dnf: ['openssl'], brew: ['openssl'] };
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Certificates of an authority that nothing trusts unless it is given `ca`. */
export interface Certificates extends AsyncDisposable {
  /** Path of the certificate of the authority. */
  readonly ca: string;
  /** Arguments of a server that speaks TLS on `port` with one of the certificates, and nothing else. */
  argsFor(name: 'valid' | 'foreign' | 'expired', port: number): string[];
}

/** Creates a valid certificate for 127.0.0.1, one for another host, and an expired one, with the program openssl. */
export async function createCertificates(): Promise<Certificates> {
  await ensureProgram('openssl', () => onPath('openssl'), PACKAGES, 'https://openssl-library.org');
  const folder = await mkdtemp(join(tmpdir(), 'redlock-tls-'));
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args, { cwd: folder });
  const authority = ['-subj', '/CN=authority', '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem'];
  await openssl('req', '-x509', ...KEY, ...authority);
  const create = async (name: string, host: string, days: number): Promise<void> => {
    await writeFile(join(folder, `${name}.ext`), `subjectAltName=${host}`);
    await openssl('req', ...KEY, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`);
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-set_serial', `${days + 2}`, '-extfile', `${name}.ext`];
    await openssl('x509', '-req', '-in', `${name}.csr`, ...signed, '-days', String(days), '-out', `${name}.pem`);
  };
  await create('valid', 'IP:127.0.0.1', 2);
  await create('foreign', 'DNS:redis.example.com', 2);
  await create('expired', 'IP:127.0.0.1', -1);
  return {
    ca: join(folder, 'ca.pem'),
    argsFor: (name, port) => [
      ...['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no'],
      ...['--tls-cert-file', join(folder, `${name}.pem`), '--tls-key-file', join(folder, `${name}.key`)],
      ...['--tls-ca-cert-file', join(folder, 'ca.pem')],
    ],
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
