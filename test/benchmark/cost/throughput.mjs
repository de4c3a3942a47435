import { fixedWork } from '../measure/noise.mjs';
import { inRounds, joinedSpread, spread } from '../measure/rounds.mjs';

/** Measures the cost of a lock at one concurrency: per contender the rate and the CPU on both sides, and the noise. */
export async function throughput({ crew, load, ttl }, { concurrency, duration, rounds, warmUps }) {
  const noise = [];
  const measured = await inRounds({ rounds, warmUps }, crew.members, async (contender, round) => {
    if (round >= 0) noise.push(fixedWork());
    const before = await load.cpu(contender);
    const { locks, elapsed, cpu, failures } = await crew.run(contender, 'load', { concurrency, duration, ttl });
    const server = (await load.cpu(contender)) - before;
    return { rate: (locks / elapsed) * 1000, client: cpu / locks, server: server / locks, failures };
  });
  const contenders = {};
  for (const [contender, found] of measured) {
    const of = (name) => spread(found.map((figures) => figures[name]));
    const failures = found.flatMap(({ failures }) => Object.entries(failures));
    contenders[contender] = { rate: of('rate'), client: of('client'), server: of('server'), failures };
  }
  return { concurrency, contenders, noise: spread(noise) };
}

/** The results of several crews as one. */
export function joined(crews) {
  const [{ concurrency, contenders: names }] = crews;
  const contenders = Object.keys(names).map((name) => {
    const found = crews.map((crew) => crew.contenders[name]);
    const of = (figure) => joinedSpread(found.map((figures) => figures[figure]));
    const failures = found.flatMap((figures) => figures.failures);
    return [name, { rate: of('rate'), client: of('client'), server: of('server'), failures }];
  });
  const noise = joinedSpread(crews.map((crew) => crew.noise));
  return { concurrency, contenders: Object.fromEntries(contenders), noise };
}
