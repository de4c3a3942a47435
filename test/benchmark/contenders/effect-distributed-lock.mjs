import { Exit, ManagedRuntime, Scope } from 'effect';
import { DistributedSemaphore, RedisBacking } from 'effect-distributed-lock';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';

/** For one master. It extends every lock, and a subscription wakes its waiters. */
export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const runtime = ManagedRuntime.make(RedisBacking.layer(clients[0]));
  const acquire = async (key, ttl) => {
    const scope = await runtime.runPromise(Scope.make());
    const semaphore = await runtime.runPromise(DistributedSemaphore.make(key, { limit: 1, ttl }));
    await runtime.runPromise(Scope.extend(semaphore.take(1), scope));
    return () => runtime.runPromise(Scope.close(scope, Exit.void));
  };
  return {
    acquire,
    hold: acquire,
    async close() {
      await runtime.dispose();
      disconnectAll(clients);
    },
  };
}
