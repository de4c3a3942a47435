const LOCAL_MASTERS = ['redis://127.0.0.1:6381', 'redis://127.0.0.1:6382', 'redis://127.0.0.1:6383'] as const;

export const IMPORT = { name: 'RedlockModule', from: 'nestjs-redlock' } as const;

// The first line is without indentation.
export function registration(quote: string, unit: string): string[] {
  const quoted = (text: string) => `${quote}${text}${quote}`;
  return [
    `${IMPORT.name}.forRoot(`,
    `${unit}process.env.REDLOCK_MASTERS?.split(${quoted(',')}) ?? {`,
    `${unit.repeat(2)}masters: [`,
    ...LOCAL_MASTERS.map((url) => `${unit.repeat(3)}${quoted(url)},`),
    `${unit.repeat(2)}],`,
    `${unit.repeat(2)}// For development: locks stop for so long if two masters restart.`,
    `${unit.repeat(2)}ttl: ${quoted('2s')},`,
    `${unit.repeat(2)}maxTtl: ${quoted('2s')},`,
    `${unit}},`,
    ')',
  ];
}

// The name keeps them apart from the containers of the application's own Compose file.
export function composeFile(packageName: string): string {
  const name =
    packageName
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '') || 'app';
  const master = (number: number) => `  master-${number}:
    <<: *master
    ports: ['127.0.0.1:${6380 + number}:6379']
`;
  return `# Three independent masters for the locks: no replication between them, each with a vote of its own.
# docker compose -f docker-compose.redlock.yml up -d
# This file is for development. In production, each master is on a machine of its own, or they fail together.
name: ${name}-redlock

x-master: &master
  image: redis:7-alpine
  command: redis-server --save "" --appendonly no --maxmemory-policy noeviction

services:
${[1, 2, 3].map(master).join('')}`;
}

const TESTING_MODULE = { name: 'RedlockTestingModule', from: 'nestjs-redlock/testing', options: '' };

// Its globals are those of jest and of vitest: a new application has one of the two.
export function exampleSpec(): string {
  const { name, from, options } = TESTING_MODULE;
  const imports = new Map<string, string[]>([['nestjs-redlock', ['LockService', 'WithLock']]]);
  imports.set(from, [...(imports.get(from) ?? []), name].sort());
  const lines = [...imports].map(([source, names]) => `import { ${names.join(', ')} } from '${source}';`);
  return `import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
${lines.join('\n')}

// An example: test a provider of the application in the same way, and delete this class.
@Injectable()
class ReportService {
  @WithLock('report:daily', { onLocked: 'skip' })
  write(): Promise<string | undefined> {
    return Promise.resolve('written');
  }
}

describe('ReportService', () => {
  it('skips a report that another call is writing', async () => {
    const testing = await Test.createTestingModule({
      // Locks in memory: the test needs no Redis.
      imports: [${name}.forRoot(${options})],
      providers: [ReportService],
    }).compile();
    const app = await testing.init();
    const reports = app.get(ReportService);

    const lock = await app.get(LockService).acquire('report:daily', '10s');
    expect(await reports.write()).toBeUndefined();
    await lock.release();
    expect(await reports.write()).toBe('written');

    await app.close();
  });
});
`;
}
