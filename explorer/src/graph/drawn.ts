/** What the drawing shows now, as lists: the picture, the table and the files are made of them. */

import type { MapPart, Place } from "./mapPart";
import type { Area, Disc, Scene, View } from "./scene";

export interface DrawnCommunity extends Area { isOpen: boolean }
/** The relationships between the entities of two closed communities, as one line. */
export interface DrawnLink {
  source: Area; target: Area; weight: number;
  /** The weight as a share of the strongest one inside the same community. */
  share: number;
}
export interface DrawnEntity {
  number: number; title: string; type: string;
  /** Number of relationships; null if the entity is drawn on a closed community. */
  relationships: number | null;
  /** The community inside which the entity is drawn; null if its community is closed. */
  community: number | null; community_title: string;
  x: number; y: number;
  /** Its radius in pixels where it is placed beside another thing and not on the map. */
  radius?: number;
}
export interface DrawnRelationship {
  number: number; source: number; target: number; source_title: string; target_title: string;
  weight: number; stated: boolean;
  /** Whether it is drawn because it is lit, wherever its ends are. */
  isLit: boolean;
  /** Whether it is less important than others, such as one between two neighbours of what is in the middle. */
  isAside?: boolean;
}
export interface DrawnGraph {
  communities: DrawnCommunity[]; links: DrawnLink[];
  entities: DrawnEntity[]; relationships: DrawnRelationship[];
  /** Half the widths and heights of rings around the middle. */
  outlines?: { x: number; y: number }[];
}

/** Things that are drawn even where their community is closed. */
export interface LitThings {
  places: readonly Place[];
  links: readonly { number: number; source: number; target: number; weight: number; stated: boolean }[];
}

/** The entities that the filters keep, by the opened community that holds them. */
export type KeptEntities = ReadonlyMap<number, ReadonlySet<number>>;

export const NOTHING_DRAWN: DrawnGraph = { communities: [], links: [], entities: [], relationships: [] };

// Maximum lines drawn for each closed community, and the radius in pixels below which it is not drawn.
const MAX_LINKS_PER_COMMUNITY = 2;
const MIN_RADIUS = 0.7;

/** Collect what opened communities hold, as far as the filters keep it, and what is lit. */
export function collectDrawn(scene: Scene, lit: LitThings, kept: KeptEntities | null): DrawnGraph {
  const communities: DrawnCommunity[] = [];
  const links: DrawnLink[] = [];
  const entities = new Map<number, DrawnEntity>();
  const relationships = new Map<number, DrawnRelationship>();
  for (const part of scene.openParts()) {
    const home = scene.areas.get(part.community);
    if (home) communities.push({ ...home, isOpen: true });
    if (part.kind === "communities") links.push(...collectLinks(scene, part));
    else collectPart(part, scene, kept && (kept.get(part.community) ?? new Set()), entities, relationships);
  }
  for (const area of scene.closedAreas()) communities.push({ ...area, isOpen: false });
  const root = scene.disc(scene.root);
  for (const { number, title, type, x, y } of lit.places) {
    // A community that is shown alone is drawn without what lies beside it.
    if (entities.has(number) || Math.hypot(x - root.x, y - root.y) > root.radius) continue;
    entities.set(number, { number, title, type, relationships: null, community: null, community_title: "", x, y });
  }
  for (const { number, source, target, weight, stated } of lit.links) {
    const [one, other] = [entities.get(source), entities.get(target)];
    if (!one || !other) continue;
    const titles = { source_title: one.title, target_title: other.title };
    relationships.set(number, { number, source, target, ...titles, weight, stated, isLit: true });
  }
  return { communities, links, entities: [...entities.values()], relationships: [...relationships.values()] };
}

function collectPart(
  part: MapPart, scene: Scene, kept: ReadonlySet<number> | null,
  entities: Map<number, DrawnEntity>, relationships: Map<number, DrawnRelationship>,
): void {
  const { community } = part;
  const home = scene.disc(community);
  const community_title = scene.areas.get(community)?.title ?? "";
  part.number.forEach((number, at) => {
    if (kept && !kept.has(number)) return;
    entities.set(number, {
      number, title: part.title[at]!, type: part.type[at] ?? "", relationships: part.size[at]!,
      community, community_title,
      x: home.x + home.radius * part.x[at]!, y: home.y + home.radius * part.y[at]!,
    });
  });
  part.relationship.forEach((number, at) => {
    const ends = [part.source[at]!, part.target[at]!].map((end) => entities.get(part.number[end]!));
    const [one, other] = ends;
    if (!one || !other) return;
    relationships.set(number, {
      number, source: one.number, target: other.number, source_title: one.title, target_title: other.title,
      weight: part.weight[at]!, stated: Boolean(part.stated[at]), isLit: false,
    });
  });
}

/** Collect the strongest lines between closed communities of a part. */
function collectLinks(scene: Scene, part: MapPart): DrawnLink[] {
  const strongest = part.weight[0] ?? 1;
  const found: DrawnLink[] = [];
  for (let at = 0; at < Math.min(part.source.length, part.number.length * MAX_LINKS_PER_COMMUNITY); at += 1) {
    const [one, other] = [part.source[at]!, part.target[at]!].map((end) => scene.areas.get(part.number[end]!));
    if (!one || !other || scene.isOpen(one.community) || scene.isOpen(other.community)) continue;
    const weight = part.weight[at]!;
    found.push({ source: one, target: other, weight, share: weight / strongest });
  }
  return found;
}

/** Keep what is in sight: things that the view holds, and lines of which it holds an end. */
export function keepVisible(drawn: DrawnGraph, view: View): DrawnGraph {
  const entities = drawn.entities.filter(({ x, y }) => isInSight({ x, y, radius: 0 }, view));
  const numbers = new Set(entities.map(({ number }) => number));
  return {
    ...keepVisibleCommunities(drawn, view), entities,
    relationships: drawn.relationships.filter(({ source, target }) => numbers.has(source) || numbers.has(target)),
  };
}

export function keepVisibleCommunities(
  { communities, links }: DrawnGraph, view: View,
): Pick<DrawnGraph, "communities" | "links"> {
  const visible = communities.filter((area) => area.radius * view.scale >= MIN_RADIUS && isInSight(area, view));
  const numbers = new Set(visible.map(({ community }) => community));
  return {
    communities: visible,
    links: links.filter(({ source, target }) => numbers.has(source.community) || numbers.has(target.community)),
  };
}

function isInSight({ x, y, radius }: Disc, view: View): boolean {
  const outside = (distance: number, half: number) => Math.max(0, Math.abs(distance) - half);
  return Math.hypot(outside(x - view.x, view.halfWidth), outside(y - view.y, view.halfHeight)) <= radius;
}
