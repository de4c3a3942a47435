let stateAt = Date.now();
let receivedAt = performance.now();

/** Only the server's clock counts. Between its answers, this page continues from it. */
export function setTime(at) {
  stateAt = at;
  receivedAt = performance.now();
}

/** Milliseconds since the Unix epoch. */
export function now() {
  return stateAt + performance.now() - receivedAt;
}

/** `2.4 s`, `3 min 20 s`, `5 h 2 min`: never negative. */
export function duration(milliseconds) {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `14:03:07` */
export function timeOfDay(at) {
  return new Date(at).toLocaleTimeString('en-GB');
}

/** `22 November, 14:03:07` */
export function dateAndTime(at) {
  return `${new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long' })}, ${timeOfDay(at)}`;
}
