import { it } from '@jest/globals';
import { generateAny } from '../simulation/generator.js';
import { AUDIT_SCHEDULES } from "../simulation/audit-schedules.js";
import { play } from '../simulation/run.js';
import { RestartGuard } from '../../lib/redis/restart-guard.js';
import { writeFileSync } from 'node:fs';
it('trace', async () => {
  const lines: string[] = [];
  const P = RestartGuard.prototype as any;
  for (const name of (process.env['METHODS'] ?? 'look,tick,judgeStep,announce,change,openEarly').split(',')) {
    const original = P[name];
    P[name] = function (...args: unknown[]) {
      if (lines.length < 20000) lines.push(`${(this.context.clock.read().monotonic).toFixed(2)} ${this.context.instance} ${name} ${args.map((a: any) => a?.server?.name ?? (typeof a === 'object' ? JSON.stringify(a, (k, v) => (k === 'marker' || k === 'server' || k==='samples' ? undefined : v))?.slice(0, 200) : String(a))).join(' | ')}`);
      return original.apply(this, args);
    };
  }
  const named = AUDIT_SCHEDULES.find(({ name }) => name.includes(process.env["NAME"] ?? "?"));
  const result = await play(named?.schedule ?? generateAny(Number(process.env["SEED"])), { log: (line) => lines.push(line) });
  lines.push(JSON.stringify(result));
  writeFileSync('/tmp/seed.log', lines.join('\n'));
});
