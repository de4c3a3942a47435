/** Recognizes plain objects of any realm; instances of classes that are not built in count as such. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return Object.prototype.toString.call(value) === '[object Object]';
}
