const SVG = 'http://www.w3.org/2000/svg';

/** An element. Attributes that are `undefined` are left out. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for drawings. */
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Writes only what has changed, so that nobody who reads along is told the same again. */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** The same for an attribute; `undefined` takes it away. */
export function mark(target, name, value) {
  if (value === undefined) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
}

/** An instance by its letter, in its colour. */
export function chip(instance) {
  return element('span', { class: 'chip', 'data-instance': instance }, instance);
}

function fill(target, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) target.setAttribute(name, value);
  target.append(...children);
  return target;
}
