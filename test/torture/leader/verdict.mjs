/**
 * Judges what the instances of an election wrote.
 *
 * @param lines their events in any order: `{ event, instance, term, at }`, and of `leads` `before` and `after` instead of
 * `at`: the clock before and after `isLeader` was read as true
 * @param kills the leaders that were killed: `{ instance, at }`
 */
export function judge({ lines, kills }) {
  const problems = [];
  const elected = lines.filter(({ event }) => event === 'elected').toSorted((one, other) => one.at - other.at);
  const resigned = lines.filter(({ event }) => event === 'resigned');

  const beliefs = beliefsIn(lines);
  let overlaps = 0;
  for (const [index, one] of beliefs.entries()) {
    const other = beliefs.slice(0, index).find(({ until }) => until > one.from);
    if (!other) continue;
    overlaps++;
    problems.push(`two leaders: ${JSON.stringify(other)} and ${JSON.stringify(one)}`);
  }

  let smaller = 0;
  for (const [index, { term }] of elected.entries()) {
    if (index === 0 || term > elected[index - 1].term) continue;
    smaller++;
    problems.push(`term ${term} is not larger than ${elected[index - 1].term} before it`);
  }

  let outOfOrder = 0;
  for (const instance of new Set(lines.map((line) => line.instance))) {
    const own = lines.filter((line) => line.instance === instance);
    const ends = own.filter(({ event }) => ['elected', 'resigned', 'lost'].includes(event));
    const isOrdered = ends.every(({ event, term }, i) =>
      i % 2 === 0 ? event === 'elected' : event !== 'elected' && term === ends[i - 1].term,
    );
    const seen = own.filter(({ event, term }) => event === 'changed' && term !== undefined).map(({ term }) => term);
    if (isOrdered && seen.every((term, i) => i === 0 || term > seen[i - 1])) continue;
    outOfOrder++;
    problems.push(`the events of ${instance} are out of order: ${ends.map(({ event }) => event).join(' ')}, ${seen}`);
  }

  const untilNext = (moments) =>
    moments.flatMap(({ at }) => {
      const next = elected.find((election) => election.at > at);
      return next ? [next.at - at] : [];
    });
  const [afterKill, afterResignation] = [untilNext(kills), untilNext(resigned)];
  const rows = [
    ['elections', elected.length],
    ['of these, ended by a resignation', resigned.length],
    ['of these, ended by a loss', lines.filter(({ event }) => event === 'lost').length],
    ['leaders killed', kills.length],
    ['moments with two leaders', overlaps],
    ['terms that are not larger than one before', smaller],
    ['instances whose events are out of order', outOfOrder],
    ['time to a new leader after a kill, median and longest', timesOf(afterKill)],
    ['time to a new leader after a resignation, median and longest', timesOf(afterResignation)],
  ];
  const table = ['| | |', '| --- | ---: |', ...rows.map(([what, count]) => `| ${what} | ${count} |`)].join('\n');
  const counts = { elections: elected.length, overlaps, smaller, outOfOrder };
  return { counts, table, problems, afterKill, afterResignation };
}

/** From the first to the last moment at which an instance certainly led in a term, by their beginnings. */
function beliefsIn(lines) {
  const beliefs = new Map();
  for (const { event, instance, term, before, after } of lines) {
    if (event !== 'leads') continue;
    const known = beliefs.get(`${instance} ${term}`);
    if (known) known.until = before;
    else beliefs.set(`${instance} ${term}`, { instance, term, from: after, until: before });
  }
  return [...beliefs.values()].toSorted((one, other) => one.from - other.from);
}

function timesOf(times) {
  if (times.length === 0) return '-';
  const sorted = times.toSorted((one, other) => one - other);
  return `${Math.round(sorted[Math.floor(sorted.length / 2)])} ms, ${Math.round(sorted.at(-1))} ms`;
}
