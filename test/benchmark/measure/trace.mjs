import { median, percentile } from './figures.mjs';

/**
 * The events on one key, from the records of each process: `[arrived, granted, releasing]` per section, in milliseconds
 * on the clock of the machine.
 */
export class Trace {
  constructor(results, start, end) {
    const sections = results
      .flatMap(({ sections }, process) => sections.map((times) => ({ process, ...named(times) })))
      .sort((a, b) => a.granted - b.granted);
    /** Waiters that compete. */
    this.waiters = results.reduce((sum, { waiters }) => sum + waiters, 0);
    /** Microseconds of CPU of all processes for each section. */
    this.cpu = results.reduce((sum, { cpu }) => sum + cpu, 0) / sections.length;
    this.failures = results.flatMap(({ failures }) => failures);
    this.processes = results.length;
    /** Number of all sections, including those that began after the end. */
    this.all = sections.length;
    this.sections = sections.filter(({ granted }) => granted < end);
    this.duration = end - start;
    // A waiter that still waits at the end has waited at least until then.
    const open = sections.filter(({ granted, arrived }) => granted >= end && arrived < end);
    this.waits = [...this.sections, ...open].map(({ arrived, granted }) => Math.min(granted, end) - arrived);
  }

  /** Sections per second, of all processes. */
  get sectionRate() {
    return (this.sections.length / this.duration) * 1000;
  }

  /** Sections per second that a waiter got. A holder that takes the key again hands nothing over. */
  get handOffRate() {
    return (this.#pairs.filter(isHandOff).length / this.duration) * 1000;
  }

  get longestWait() {
    return Math.max(0, ...this.waits);
  }

  /** How long each would wait if the sections went round, in milliseconds. */
  get evenShare() {
    return (1000 * this.waiters) / this.sectionRate;
  }

  get medianWait() {
    return median(this.waits);
  }

  /** Sections that began before another one was over. There must be none. */
  get overlaps() {
    return this.#pairs.filter(([before, after]) => after.granted < before.releasing).length;
  }

  /** The largest number of sections that were under way at the same time: 1 for a lock. */
  get mostAtOnce() {
    const changes = this.sections.flatMap(({ granted, releasing }) => [
      { at: granted, by: 1 },
      { at: releasing, by: -1 },
    ]);
    // An end goes before a beginning at the same time: those two do not overlap.
    changes.sort((a, b) => a.at - b.at || a.by - b.by);
    let now = 0;
    return changes.reduce((most, { by }) => Math.max(most, (now += by)), 0);
  }

  /** The ratio of the numbers of sections of the most and of the least successful process. */
  get luck() {
    const counts = new Array(this.processes).fill(0);
    for (const { process } of this.sections) counts[process] += 1;
    return Math.max(...counts) / Math.min(...counts);
  }

  /** The largest number of later arrivals that overtook one waiter. */
  get mostOvertaken() {
    return Math.max(0, ...this.sections.map((section, index) => this.#overtakenBy(section, index)));
  }

  /** Times from the call of release to the work of the next holder, which already waited in another process. */
  get handOffsAway() {
    return this.#pairs
      .filter(([before, after]) => before.process !== after.process)
      .filter(isHandOff)
      .map(timeOf);
  }

  get #pairs() {
    return this.sections.slice(1).map((section, index) => [this.sections[index], section]);
  }

  #overtakenBy({ arrived }, index) {
    let count = 0;
    for (let i = index - 1; i >= 0 && this.sections[i].granted > arrived; i--) {
      if (this.sections[i].arrived > arrived) count += 1;
    }
    return count;
  }
}

const isHandOff = ([before, after]) => after.arrived < before.releasing;
const timeOf = ([before, after]) => after.granted - before.releasing;

export function latencies(values) {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), samples: values.length };
}

function named([arrived, granted, releasing]) {
  return { arrived, granted, releasing };
}
