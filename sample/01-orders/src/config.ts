/** Masters from `REDIS_URLS`: a comma-separated list, or `memory` for one process without Redis. */
export function mastersOf(env: NodeJS.ProcessEnv): string[] | 'memory' {
  const urls = env.REDIS_URLS;
  if (!urls) {
    throw new Error('REDIS_URLS is not set: give it the URLs of the masters with commas between, or the word memory');
  }
  return urls === 'memory' ? urls : urls.split(',').map((url) => url.trim());
}
