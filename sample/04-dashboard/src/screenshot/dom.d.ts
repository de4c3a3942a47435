// The parts of a page that the declarations of playwright-core refer to. The program runs outside a browser, so it does
// not include the rest of the DOM.
interface Node {
  readonly nodeName: string;
}
interface HTMLElement extends Node {
  readonly lang: string;
}
interface SVGElement extends Node {
  readonly viewportElement: SVGElement | null;
}
interface HTMLElementTagNameMap {
  readonly html: HTMLElement;
}
