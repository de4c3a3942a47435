/** Creates an element. Attributes with the value `undefined` are left out. */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/** Writes only changes, so that a screen reader does not repeat the same content. */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Shows a text, or hides its element without one. */
export function writeOrHide(target, text) {
  target.hidden = !text;
  write(target, text ?? '');
}

/**
 * Keeps one element for each key, in order. An element that stays keeps its focus.
 *
 * @param make creates the element of a new key
 */
export function keep(place, elements, keys, make) {
  for (const [key, old] of elements) {
    if (keys.includes(key)) continue;
    old.remove();
    elements.delete(key);
  }
  keys.forEach((key, index) => {
    if (!elements.has(key)) elements.set(key, make(key));
    const wanted = elements.get(key);
    if (place.children[index] !== wanted) place.insertBefore(wanted, place.children[index] ?? null);
  });
}
