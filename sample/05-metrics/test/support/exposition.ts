/** One line of the answer of `/metrics`. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads the metrics of locks like Prometheus does. */
export async function scrape(url: string): Promise<readonly Sample[]> {
  const response = await fetch(`${url}/metrics`);
  const type = response.headers.get('content-type') ?? '';
  if (!type.startsWith('text/plain')) throw new Error(`/metrics answers with the content type ${type}`);
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('redlock_'));
  return lines.map(parse);
}

/** The values of one metric, by one of its labels. */
export function valuesOf(samples: readonly Sample[], name: string, label: string): Record<string, number> {
  const found = samples.filter((sample) => sample.name === name);
  return Object.fromEntries<number>(found.map(({ labels, value }) => [labels[label] ?? 'none', value]));
}

function parse(line: string): Sample {
  const [, name, labels, value] = /^(\w+)\{(.*)\} (\S+)/.exec(line) ?? [];
  if (name === undefined || labels === undefined) throw new Error(`/metrics has a line that is no sample: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text] as const);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}
