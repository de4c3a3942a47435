// At most this many different patterns, however many resources there are.
const MAX_PATTERNS = 100;

const LONGEST_PATTERN = 64;

// For all further patterns, and for resources for which the function throws or returns an empty string.
const OTHER = 'other';

// Names for kinds of resources, few enough to be attributes of metrics.
export class ResourcePatterns {
  private readonly known = new Set<string>();

  constructor(private readonly patternOf: (resource: string) => string = beginningOf) {}

  of(resources: readonly string[]): string {
    const pattern = patternOf(resources, this.patternOf);
    if (this.known.has(pattern)) return pattern;
    if (this.known.size >= MAX_PATTERNS) return OTHER;
    this.known.add(pattern);
    return pattern;
  }
}

function patternOf(resources: readonly string[], nameOf: (resource: string) => string = beginningOf): string {
  try {
    const [first = '', ...others] = resources.map((resource) => nameOf(resource));
    const all = others.length === 0 ? first : [...new Set([first, ...others])].sort().join(',');
    return all.slice(0, LONGEST_PATTERN) || OTHER;
  } catch {
    // The function is user code, and its error must not fail the acquisition.
    return OTHER;
  }
}

// A name without a colon may be one of many, so its pattern is `*`.
export function beginningOf(resource: string): string {
  return `${resource.slice(0, resource.indexOf(':') + 1)}*`;
}
