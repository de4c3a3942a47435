import { median, percentile } from './numbers.mjs';

/**
 * What happened on one key, from what each process noted: `[arrived, granted, releasing]` per section, in milliseconds
 * on the clock of the machine.
 */
export class Trace {
  constructor(results, start, end) {
    const sections = results
      .flatMap(({ sections }, process) => sections.map((times) => ({ process, ...named(times) })))
      .sort((a, b) => a.granted - b.granted);
    this.failures = results.flatMap(({ failures }) => failures);
    this.processes = results.length;
    /** Of sections that began in time and later. */
    this.all = sections.length;
    this.sections = sections.filter(({ granted }) => granted < end);
    this.duration = end - start;
    // Who still waits at the end has waited until then at least.
    const open = sections.filter(({ granted, arrived }) => granted >= end && arrived < end);
    this.waits = [...this.sections, ...open].map(({ arrived, granted }) => Math.min(granted, end) - arrived);
  }

  /** Sections per second, whoever got them. */
  get sectionRate() {
    return (this.sections.length / this.duration) * 1000;
  }

  /** Sections per second that went to somebody who waited already: a holder that takes the key again hands nothing over. */
  get handOffRate() {
    return (this.#pairs.filter(isHandOff).length / this.duration) * 1000;
  }

  get longestWait() {
    return Math.max(0, ...this.waits);
  }

  get medianWait() {
    return median(this.waits);
  }

  /** Sections that began while another was not over: must be none. */
  get overlaps() {
    return this.#pairs.filter(([before, after]) => after.granted < before.releasing).length;
  }

  /** Sections of the process with most of them, and of the one with fewest. */
  get luck() {
    const counts = new Array(this.processes).fill(0);
    for (const { process } of this.sections) counts[process] += 1;
    return { most: Math.max(...counts), fewest: Math.min(...counts) };
  }

  /** How many that arrived later went before the same waiter, in the worst case. */
  get mostOvertaken() {
    return Math.max(0, ...this.sections.map((section, index) => this.#overtakenBy(section, index)));
  }

  /** From the call of release in one process to the work of the next holder in another, which waited already. */
  get handOffs() {
    return this.#pairs
      .filter(([before, after]) => before.process !== after.process && isHandOff([before, after]))
      .map(([before, after]) => after.granted - before.releasing);
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

export function latencies(values) {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), samples: values.length };
}

function named([arrived, granted, releasing]) {
  return { arrived, granted, releasing };
}
