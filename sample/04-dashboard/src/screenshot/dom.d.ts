// What the declarations of playwright-core name of a page. This is no browser, so the rest of the DOM stays away.
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
