/** What the graph shows: communities as discs, some of them opened into their insides. */

import { type MapPart, ROOT } from "./mapPart";

/** Number of colours that can be told apart, also with colour blindness. */
export const N_HUES = 8;
/** Maximum number of communities and entities that are shown at once. */
export const MAX_THINGS = 3000;

/** A disc in the unit disc of the whole map. */
export interface Disc { x: number; y: number; radius: number }
/** A part of the map to show; `halfHeight` is that of a part that is not as high as wide. */
export interface Part extends Disc { halfHeight?: number }

export interface Area extends Disc {
  community: number;
  title: string;
  size: number;
  parent: number;
  depth: number;
  /** The hue of the area of the coarsest level that it lies in. */
  hue: number;
  /** Its entities of each type; those of rare types and of none have the empty name. */
  types: readonly (readonly [type: string, count: number])[];
}

/** The part of the screen that is visible, in the coordinates of the map. */
export interface View { x: number; y: number; halfWidth: number; halfHeight: number; scale: number }

// An area is open while its radius exceeds this many pixels, and by this factor that of the largest one in the view of
// the whole: what is open follows from the view, and not from where the reader has been.
const OPEN_RADIUS = 105;
const OPEN_FACTOR = 1.1;
/** Share of the view that a part of the map takes after the view has moved to it. */
export const FILLED_SHARE = 0.9;

export class Scene {
  readonly parts = new Map<number, MapPart>();
  readonly areas = new Map<number, Area>();
  readonly opened = new Set<number>();

  constructor(readonly root: number, private readonly rootDisc: Disc = { x: 0, y: 0, radius: 1 }) {}

  /** Add a loaded part. The community that it belongs to is opened. */
  add(part: MapPart): void {
    this.parts.set(part.community, part);
    this.opened.add(part.community);
    if (part.kind === "entities") return;
    const home = this.disc(part.community);
    const parent = this.areas.get(part.community);
    const hues = parent ? [] : chooseHues(part);
    for (let at = 0; at < part.number.length; at += 1) {
      const community = part.number[at]!;
      this.areas.set(community, {
        community, title: part.title[at]!, size: part.size[at]!, parent: part.community,
        depth: (parent?.depth ?? -1) + 1, hue: parent?.hue ?? hues[at]!,
        x: home.x + home.radius * part.x[at]!, y: home.y + home.radius * part.y[at]!,
        radius: home.radius * part.radius[at]!, types: typesOf(part, at),
      });
    }
  }

  disc(community: number): Disc {
    return community === this.root ? this.rootDisc : this.areas.get(community) ?? this.rootDisc;
  }

  /** The opened communities, the outermost first. */
  openParts(): MapPart[] {
    const found: MapPart[] = [];
    const visit = (community: number) => {
      const part = this.parts.get(community);
      if (!part || !this.opened.has(community)) return;
      found.push(part);
      if (part.kind === "communities") part.number.forEach(visit);
    };
    visit(this.root);
    return found;
  }

  /** Areas that are shown as closed discs. */
  closedAreas(): Area[] {
    return this.openParts().filter(({ kind }) => kind === "communities").flatMap(({ number }) =>
      Array.from(number).filter((one) => !this.isOpen(one)).map((one) => this.areas.get(one)!));
  }

  isOpen(community: number): boolean {
    return this.opened.has(community) && this.parts.has(community);
  }

  /** Return the smallest part of the map that holds all that is shown of the whole. */
  whole(): Part {
    const part = this.parts.get(this.root);
    if (!part?.number.length) return this.rootDisc;
    const { x, y, radius } = this.rootDisc;
    return boundsOf(Array.from(part.number, (_, at) => (
      { x: x + radius * part.x[at]!, y: y + radius * part.y[at]!, radius: radius * (part.radius[at] || 0.08) }
    )));
  }

  /** Return the radius in pixels from which areas are open. */
  private openRadius({ halfWidth, halfHeight, scale }: View): number {
    const part = this.parts.get(this.root);
    if (part?.kind !== "communities" || part.number.length < 2) return OPEN_RADIUS;
    const whole = this.whole();
    const wholeScale = scaleOf(whole, halfWidth * scale, halfHeight * scale);
    return Math.max(OPEN_RADIUS, OPEN_FACTOR * wholeScale * this.rootDisc.radius * Math.max(...part.radius));
  }

  countThings(): number {
    return this.openParts().reduce((sum, { number }) => sum + number.length, 0);
  }

  /**
   * Open areas that have become large on the screen, and close those that are small or far away.
   * Returns the communities whose parts have to be loaded, the nearest to the middle first.
   */
  follow(view: View): number[] {
    const openRadius = this.openRadius(view);
    for (const { community } of this.openParts()) {
      if (community === this.root) continue;
      const disc = this.disc(community);
      if (disc.radius * view.scale <= openRadius || !isVisible(disc, view, 1)) this.opened.delete(community);
    }
    const wanted = this.closedAreas()
      .filter((area) => area.radius * view.scale > openRadius && isVisible(area, view, 1))
      .sort((a, b) => distance(a, view) - distance(b, view));
    let count = this.countThings();
    const missing: number[] = [];
    for (const area of wanted) {
      count += Math.min(area.size, this.parts.get(area.community)?.number.length ?? area.size);
      if (count > MAX_THINGS && missing.length) break;
      if (this.parts.has(area.community)) this.opened.add(area.community);
      else missing.push(area.community);
    }
    return missing;
  }

  /** Forget parts that are not shown, so that memory does not grow with what was visited. */
  forget(maxParts: number): void {
    for (const community of this.parts.keys()) {
      if (this.parts.size <= maxParts) return;
      if (!this.opened.has(community) && community !== ROOT) this.parts.delete(community);
    }
  }
}

/** Return the smallest part of the map that holds discs. */
export function boundsOf(discs: readonly Disc[]): Required<Part> {
  const [left, right] = [Math.min(...discs.map(({ x, radius }) => x - radius)), Math.max(...discs.map(({ x, radius }) => x + radius))];
  const [low, high] = [Math.min(...discs.map(({ y, radius }) => y - radius)), Math.max(...discs.map(({ y, radius }) => y + radius))];
  return { x: (left + right) / 2, y: (low + high) / 2, radius: (right - left) / 2, halfHeight: (high - low) / 2 };
}

/** Return the pixels per unit of the map at which a part fills a view, given half the view's sides in pixels. */
export function scaleOf({ radius, halfHeight = radius }: Part, halfWidth: number, halfViewHeight: number): number {
  return FILLED_SHARE * Math.min(halfWidth / radius, halfViewHeight / halfHeight);
}

/** Give each disc of a part the hue whose discs are the farthest from it, so that neighbours differ. */
function chooseHues({ number, x, y, radius }: MapPart): number[] {
  const hues: number[] = [];
  for (let at = 0; at < number.length; at += 1) {
    const gaps = Array.from({ length: N_HUES }, () => Infinity);
    hues.forEach((hue, other) => {
      gaps[hue] = Math.min(gaps[hue]!, Math.hypot(x[at]! - x[other]!, y[at]! - y[other]!) - radius[at]! - radius[other]!);
    });
    hues.push(gaps.indexOf(Math.max(...gaps)));
  }
  return hues;
}

function typesOf({ types, typeCounts }: MapPart, at: number): Area["types"] {
  const width = types.length + 1;
  return Array.from(typeCounts.subarray(at * width, (at + 1) * width), (count, type) => [types[type] ?? "", count] as const)
    .filter(([, count]) => count);
}

function isVisible(disc: Disc, view: View, margin: number): boolean {
  return Math.abs(disc.x - view.x) < view.halfWidth * margin + disc.radius &&
    Math.abs(disc.y - view.y) < view.halfHeight * margin + disc.radius;
}

function distance(disc: Disc, view: View): number {
  return Math.hypot(disc.x - view.x, disc.y - view.y);
}
