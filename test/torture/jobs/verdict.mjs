const SECOND = 1_000;

/**
 * Judges the runs of a job that is due every second.
 *
 * @param lines what the instances wrote before and after each run: `{ event, tick, attempt, instance, at }`
 * @param kills the instances that were killed: `{ instance, at }`
 * @param recorded what the history of the job has shown, by tick and attempt; if absent, it is not looked at
 * @param mayMiss whether a tick need not run
 * @param mayRepeat whether the tick of an attempt may run again; by default, if its instance was killed
 * @param from the ticks after this moment and up to `until` count, in milliseconds since the epoch
 */
export function explain({ lines, kills, recorded, from, until, mayMiss = () => false, mayRepeat = wasKilled(kills) }) {
  const starts = lines.filter(({ event }) => event === 'start');
  const hasEnded = ({ tick, attempt, instance }) =>
    lines.some(
      (line) => line.event === 'end' && line.tick === tick && line.attempt === attempt && line.instance === instance,
    );
  const byTick = group(starts);
  const problems = [];
  const counts = { scheduled: 0, once: 0, again: 0, excused: 0, missed: 0, doubled: 0, proved: 0, afterEnd: 0 };
  const first = Math.ceil(from / SECOND) * SECOND;
  for (let tick = first; tick <= until - SECOND; tick += SECOND) {
    counts.scheduled++;
    const runs = (byTick.get(tick) ?? []).toSorted((one, other) => one.attempt - other.attempt);
    const last = runs.at(-1);
    if (!last && mayMiss(tick)) counts.excused++;
    else if (!last) {
      counts.missed++;
      problems.push(`${name(tick)} never ran`);
    } else if (runs.length === 1) counts.once++;
    else {
      counts.again++;
      for (const run of runs.slice(0, -1)) {
        if (!mayRepeat(run)) {
          counts.doubled++;
          problems.push(
            `${name(tick)} ran again although nothing happened to ${run.instance}: ${JSON.stringify(runs)}`,
          );
        } else if (hasEnded(run)) counts.afterEnd++;
        if (!recorded) continue;
        const story = recorded.get(`${tick} ${run.attempt}`);
        if (story?.outcome === 'unfinished' && story.instance === run.instance) counts.proved++;
        else
          problems.push(
            `the history does not show that attempt ${run.attempt} of ${name(tick)} is unfinished: ${JSON.stringify(story)}`,
          );
      }
    }
    if (last && !hasEnded(last)) problems.push(`the last attempt of ${name(tick)} has not ended`);
  }
  const rows = [
    ['ticks scheduled', counts.scheduled],
    ['run once', counts.once],
    ['run again after a kill', counts.again],
    ['of these, killed between the end of the work and its record', counts.afterEnd],
    ['attempts that the history shows as unfinished', counts.proved],
    ['missed', counts.missed],
    ['doubled without a kill', counts.doubled],
    ['instances killed', kills.length],
  ];
  const table = ['| | |', '| --- | ---: |', ...rows.map(([what, count]) => `| ${what} | ${count} |`)].join('\n');
  return { counts, table, problems };
}

function wasKilled(kills) {
  const killed = new Set(kills.map(({ instance }) => instance));
  return ({ instance }) => killed.has(instance);
}

function name(tick) {
  return `the tick of ${new Date(tick).toISOString()}`;
}

function group(starts) {
  const groups = new Map();
  for (const start of starts) groups.set(start.tick, [...(groups.get(start.tick) ?? []), start]);
  return groups;
}
