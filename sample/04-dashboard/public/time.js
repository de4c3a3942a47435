let snapshotAt;
let receivedAt;

/** Only the server's clock counts. Between its messages, this page continues from it. */
export function setTime(at) {
  snapshotAt = at;
  receivedAt = performance.now();
}

/** Milliseconds since the Unix epoch; `undefined` before the first message. */
export function now() {
  return snapshotAt === undefined ? undefined : snapshotAt + performance.now() - receivedAt;
}

/** `2.4 s`, never negative. */
export function seconds(milliseconds) {
  return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
}

/** `14:03:07` */
export function timeOfDay(at) {
  return new Date(at).toLocaleTimeString('en-GB');
}
