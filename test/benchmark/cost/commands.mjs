import { CommandCounter } from '../measure/command-counter.mjs';

const COUNTED = 50;

/** Commands that the servers receive for one acquired and released lock, per contender. */
export async function commandsPerLock({ crew, urls, ttl }) {
  const commands = {};
  for (const contender of crew.members) {
    const counter = await CommandCounter.start(urls);
    await crew.run(contender, 'cycles', { count: COUNTED, ttl });
    commands[contender] = (await counter.stop()) / COUNTED;
  }
  return commands;
}
