import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type Certificates, createCertificates } from '../support/certificates.js';
import { startCluster, type TestCluster } from '../support/cluster.js';
import { allGranted, PATIENT, resourceOn, sealOf, SETTINGS, slotOf, TTL } from '../support/cluster-locks.js';
import { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

/** A server whose second port is taken is started again on others. */
const tlsPortOf = (port: number): number => port + 1;

let certificates: Certificates;
let cluster: TestCluster;
let urls: string[];

beforeAll(async () => {
  certificates = await createCertificates();
  cluster = await startCluster({
    replicas: 0,
    // With `tls-cluster`, nodes announce their TLS ports to clients that use TLS.
    args: (port) => [...certificates.argsFor('valid', tlsPortOf(port)), '--port', String(port), '--tls-cluster', 'yes'],
  });
  urls = cluster.nodes.map(({ port }) => `rediss://127.0.0.1:${tlsPortOf(port)}`);
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await certificates[Symbol.asyncDispose]();
});

describe('A cluster with TLS', () => {
  it('is found from one node, reached by its TLS ports only, and followed when a slot is moved', async () => {
    const [first, second] = cluster.nodes;
    const ca = await readFile(certificates.ca, 'utf8');
    await using contender = await Contender.on([{ cluster: urls.slice(0, 1), tls: { ca } }], SETTINGS);
    const shards = contender.redlock.status().masters.flatMap(({ shards = [] }) => shards);
    expect(shards.map(({ address }) => `rediss://${address}`).sort()).toEqual([...urls].sort());
    const resource = await resourceOn(first!);
    await allGranted(contender, [resource, await resourceOn(second!)]);
    // The harness moves keys without TLS.
    await first!.command('DEL', sealOf(resource));
    await cluster.moveSlot(slotOf(resource), second!, { steps: ['importing', 'migrating', 'node'] });
    await (await contender.acquire(resource, TTL, PATIENT)).release();
  });

  it('is refused if its certificate is not trusted', async () => {
    const contender = Contender.on([{ cluster: urls }], SETTINGS, {}, { within: 3_000 });
    await expect(contender).rejects.toThrow(/certificate/);
  });
});
