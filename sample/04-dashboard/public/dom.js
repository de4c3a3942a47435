const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element. Attributes with the value `undefined` are left out. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an SVG element in the same way. */
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Writes only changes, so that a screen reader does not repeat the same content. */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Does the same for an attribute; `undefined` removes it. */
export function mark(target, name, value) {
  if (value === undefined) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
}

/** The letter of an instance, in its colour. */
export function chip(instance) {
  return element('span', { class: 'chip', 'data-instance': instance }, instance);
}

function fill(target, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) target.setAttribute(name, value);
  target.append(...children);
  return target;
}
