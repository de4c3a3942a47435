import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export const FOLDER = join(import.meta.dirname, '..', '..');

/** A query of a panel or of an alert. */
export interface Query {
  /** The title of the panel, or the name of the alert. */
  readonly title: string;
  readonly expression: string;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

export async function readDashboard(): Promise<Dashboard> {
  return JSON.parse(await readFile(join(FOLDER, 'grafana/dashboard.json'), 'utf8')) as Dashboard;
}

/** The queries of all panels, with values for the variables of the dashboard. */
export function queriesOf({ panels }: Dashboard): Query[] {
  return panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      title,
      expression: expr.replaceAll('$__rate_interval', '1m').replaceAll('$service', '.*'),
    })),
  );
}

/** The expressions of all alerts. Reads only the YAML that this file consists of. */
export async function readAlerts(): Promise<Query[]> {
  const text = await readFile(join(FOLDER, 'prometheus/alerts.yml'), 'utf8');
  const alerts = text.split(/^ +- alert: /m).slice(1);
  return alerts.map((alert) => {
    const [title = ''] = alert.split('\n');
    const [, expression = ''] = /^ +expr: (?:>-)?([^]*?)^ +(?:for|labels):/m.exec(alert) ?? [];
    return { title, expression: expression.replace(/\s+/g, ' ').trim() };
  });
}

/** The expressions in the pages of the library. */
export async function readDocumented(): Promise<Query[]> {
  const folder = join(FOLDER, '../../docs');
  const pages = (await readdir(folder)).filter((name) => name.endsWith('.md'));
  const queries = pages.map(async (page) => {
    const text = await readFile(join(folder, page), 'utf8');
    const blocks = [...text.matchAll(/^ *```(?:text|promql)\n([^]*?)```/gm)].map(([, block = '']) => block.trim());
    return blocks.filter((block) => block.includes('redlock_')).map((expression) => ({ title: page, expression }));
  });
  return (await Promise.all(queries)).flat();
}

/** The metrics and the labels that an expression names. */
export function namesIn(expression: string): {
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
} {
  const labels = new Set<string>();
  const note = (list: string): string => {
    for (const [label] of list.matchAll(/\w+/g)) labels.add(label);
    return ' ';
  };
  const rest = expression
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => note(matchers))
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, list: string) => note(list));
  return { metrics: [...new Set(rest.match(/\bredlock_\w+/g))], labels: [...labels] };
}
