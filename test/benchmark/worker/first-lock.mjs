// A process that takes one lock, and reports the time of each step since its start, in milliseconds.
const [contender, url, ttl] = process.argv.slice(2);

const { connect } = await import(`../contenders/${contender}.mjs`);
const imported = performance.now();
const found = await connect([url], { ttl: Number(ttl) });
const connected = performance.now();
if (found.acquire) await (await found.acquire('first', Number(ttl)))();
else await found.cycle('first', Number(ttl));
const locked = performance.now();
process.stdout.write(JSON.stringify({ imported, connected, locked }));
await found.close();
