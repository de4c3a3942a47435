/** Does what the syntax `@decorator` above a method does. */
export function decorate(Class, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(Class.prototype, name);
  const result = decorator(Class.prototype, name, descriptor) ?? descriptor;
  Object.defineProperty(Class.prototype, name, result);
}
