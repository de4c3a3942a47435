/** So many different patterns become values of an attribute, however many resources there are. */
const MOST_PATTERNS = 100;
const LONGEST_PATTERN = 64;
/** What all the others are called, and what a function has no pattern for. */
const OTHER = 'other';

/** Names for kinds of resources: few enough to be attributes of metrics. */
export class ResourcePatterns {
  private readonly known = new Set<string>();

  constructor(private readonly patternOf: (resource: string) => string = beginning) {}

  /** One name for all resources of a lock. */
  of(resources: readonly string[]): string {
    const pattern = this.joined(resources);
    if (this.known.has(pattern)) return pattern;
    if (this.known.size >= MOST_PATTERNS) return OTHER;
    this.known.add(pattern);
    return pattern;
  }

  private joined(resources: readonly string[]): string {
    try {
      const patterns = new Set(resources.map((resource) => this.patternOf(resource)));
      return [...patterns].sort().join(',').slice(0, LONGEST_PATTERN) || OTHER;
    } catch {
      // The function is the user's, and the lock is more important than its name.
      return OTHER;
    }
  }
}

/** Nobody knows whether a name without a colon is one of few. */
function beginning(resource: string): string {
  return `${resource.slice(0, resource.indexOf(':') + 1)}*`;
}
