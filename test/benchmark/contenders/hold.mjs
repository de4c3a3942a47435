/** For libraries that extend a lock only while a function runs: takes the lock, and returns a function that ends it. */
export function holdWith(using) {
  return (key, ttl) =>
    new Promise((resolve, reject) => {
      const ended = using(key, ttl, () => {
        return new Promise((end) => {
          resolve(() => {
            end();
            return ended;
          });
        });
      });
      ended.catch(reject);
    });
}
