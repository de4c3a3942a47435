import { CommandCounter } from '../measure/command-counter.mjs';

const COUNTED = 50;
/** Some contenders ask their masters something now and then. The smallest of some counts is that of the locks alone. */
const ROUNDS = 3;

/** Commands that the servers receive for one acquired and released lock, per contender. */
export async function commandsPerLock({ crew, urls, ttl }) {
  const commands = {};
  for (const contender of crew.members) {
    const counts = [];
    for (let round = 0; round < ROUNDS; round++) {
      const counter = await CommandCounter.start(urls);
      await crew.run(contender, 'cycles', { count: COUNTED, ttl });
      counts.push(await counter.stop());
    }
    commands[contender] = Math.min(...counts) / COUNTED;
  }
  return commands;
}
