import { mark, shape } from './dom.js';
import { now } from './time.js';

/** Length of the visible period, in milliseconds. */
const WINDOW = 60_000;
const LABELS = 122;
const RIGHT = 14;
const TOP = 6;
const LANE = 30;
const BAR = 22;
const MASTER_LANE = 17;
const MASTER_BAR = 7;
const AXIS = 18;
const STEP = 10_000;

/**
 * The holders of each lock, and the states of the masters. Each bar is drawn once at its position in time. Only the
 * whole drawing moves, and bars that have not ended grow.
 */
export class TimelineChart {
  #svg;
  #lanes = new Map();
  /** The drawn bars. A bar grows until an event reports its end. */
  #bars = [];
  #tenures = shape('g');
  /** On top of all later bars. */
  #losses = shape('g');
  #moving = shape('g', {}, this.#tenures, this.#losses);
  #fixed = shape('g');
  #origin;
  #width = 0;

  constructor(svg) {
    this.#svg = svg;
    const clip = shape('clipPath', { id: 'window' }, shape('rect', { x: LABELS, y: 0, width: 0, height: 0 }));
    svg.append(clip, this.#fixed, shape('g', { 'clip-path': 'url(#window)' }, this.#moving));
    new ResizeObserver(() => this.#layOut()).observe(svg);
  }

  /** Clears everything, and uses these lanes from now on. */
  reset() {
    this.#bars = [];
    this.#tenures.replaceChildren();
    this.#losses.replaceChildren();
  }

  setLanes(resources, masters) {
    if (this.#lanes.size > 0) return;
    let y = TOP;
    for (const name of resources) {
      this.#lanes.set(name, { y, height: BAR, label: name });
      y += LANE;
    }
    y += 6;
    for (const number of masters) {
      this.#lanes.set(number, { y, height: MASTER_BAR, label: `master ${number}` });
      y += MASTER_LANE;
    }
    mark(this.#svg, 'height', y + AXIS);
    this.#layOut();
  }

  add(event) {
    const { kind, at } = event;
    if (kind === 'granted') this.#begin({ lane: event.resource, owner: event.instance, from: at });
    if (kind === 'released' || kind === 'lost') this.#end(event.resource, event.instance, at, kind === 'lost');
    if (kind === 'master') this.#begin({ lane: event.number, state: event.state, from: at });
  }

  tick() {
    const time = now();
    if (time === undefined || this.#lanes.size === 0) return;
    this.#origin ??= time;
    const offset = LABELS + this.#chart - (time - this.#origin) * this.#scale;
    mark(this.#moving, 'transform', `translate(${offset.toFixed(1)} 0)`);
    for (const bar of this.#bars) this.#draw(bar, time);
    this.#forget(time - WINDOW);
  }

  get #chart() {
    return Math.max(0, this.#width - LABELS - RIGHT);
  }

  get #scale() {
    return this.#chart / WINDOW;
  }

  #begin({ lane, owner, state, from }) {
    // A paused instance has not yet reported that it holds nothing any more.
    for (const bar of this.#bars) if (bar.lane === lane) bar.to ??= from;
    this.#bars.push({ lane, owner, state, from, to: undefined });
  }

  #end(lane, owner, at, isLost) {
    const bar = this.#bars.findLast((each) => each.lane === lane && each.owner === owner && !each.isEnded);
    if (!bar) return;
    bar.to ??= at;
    bar.isEnded = true;
    if (isLost) bar.lostAt = at;
    bar.isFinal = false;
  }

  #draw(bar, time) {
    if (bar.isFinal) return;
    const lane = this.#lanes.get(bar.lane);
    if (!lane) return;
    bar.element ??= this.#create(bar, lane);
    const x = (bar.from - this.#origin) * this.#scale;
    const width = Math.max(2, ((bar.to ?? time) - bar.from) * this.#scale);
    const [rect, label] = bar.element.children;
    mark(rect, 'x', x.toFixed(1));
    // A gap, so that two tenures of one instance do not look like one.
    mark(rect, 'width', Math.max(1, width - (bar.owner ? 1.5 : 0)).toFixed(1));
    if (label) {
      mark(label, 'x', (x + 7).toFixed(1));
      mark(label, 'visibility', width < 22 ? 'hidden' : 'visible');
    }
    if (bar.lostAt) this.#drawLoss(bar, (bar.lostAt - this.#origin) * this.#scale, lane);
    bar.isFinal = bar.to !== undefined;
  }

  #create({ lane: name, owner, state }, { y, height }) {
    const isMaster = owner === undefined;
    const data = isMaster ? { 'data-state': state } : { 'data-instance': owner };
    const group = shape('g', { class: 'bar', ...data }, shape('rect', { y, height, rx: isMaster ? 2 : 4 }));
    if (!isMaster) group.append(shape('text', { y: y + height / 2 }, owner));
    group.append(shape('title', {}, isMaster ? `master ${name}: ${state}` : `${owner}: ${name}`));
    this.#tenures.append(group);
    return group;
  }

  #drawLoss(bar, x, { y, height }) {
    bar.loss?.remove();
    const [cx, cy] = [x, y + height / 2];
    const cross = `M${cx - 3.5} ${cy - 3.5}l7 7m0-7l-7 7`;
    bar.loss = shape('g', { class: 'loss' }, shape('circle', { cx, cy, r: 8 }), shape('path', { d: cross }));
    this.#losses.append(bar.loss);
  }

  #forget(before) {
    this.#bars = this.#bars.filter((bar) => {
      if (bar.to === undefined || bar.to > before - STEP) return true;
      bar.element?.remove();
      bar.loss?.remove();
      return false;
    });
  }

  #layOut() {
    this.#width = this.#svg.clientWidth;
    const lanes = [...this.#lanes.values()];
    const bottom = Math.max(0, ...lanes.map(({ y, height }) => y + height)) + 6;
    const clip = this.#svg.querySelector('clipPath rect');
    mark(clip, 'width', this.#chart + RIGHT);
    mark(clip, 'height', bottom);
    this.#fixed.replaceChildren(...this.#axis(bottom), ...lanes.map(labelOf));
    for (const bar of this.#bars) bar.isFinal = false;
    this.tick();
  }

  #axis(bottom) {
    const parts = [];
    for (let ago = 0; ago <= WINDOW; ago += STEP) {
      const x = LABELS + this.#chart - ago * this.#scale;
      const anchor = ago === 0 ? 'end' : 'middle';
      parts.push(shape('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: bottom }));
      const text = ago === 0 ? 'now' : `${ago / 1000} s ago`;
      parts.push(
        shape('text', { class: 'tick', x: ago === 0 ? x + RIGHT : x, y: bottom + 13, 'text-anchor': anchor }, text),
      );
    }
    return parts;
  }
}

function labelOf({ y, height, label }) {
  const kind = height === BAR ? 'lane' : 'lane small';
  return shape('text', { class: kind, x: 0, y: y + height / 2 }, label);
}
