import { it } from '@jest/globals';
import { AUDIT_SCHEDULES } from '../simulation/audit-schedules.js';
import { play } from '../simulation/run.js';
import { writeFileSync } from 'node:fs';
it('trace', async () => {
  const lines: string[] = [];
  for (const { name, schedule } of AUDIT_SCHEDULES) {
    if (!name.includes(process.env['NAME'] ?? '')) continue;
    const result = await play(schedule, { log: (line) => lines.push(line) });
    lines.push(JSON.stringify(result));
  }
  writeFileSync('/tmp/trace.log', lines.join('\n'));
});
