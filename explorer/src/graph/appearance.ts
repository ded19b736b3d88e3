/** Colours and sizes of what is drawn. */

import type { DrawnEntity, DrawnRelationship } from "./drawn";
import { type Area, type Disc, N_HUES } from "./scene";

/** Colours of the page, read from its style sheet. */
export interface Palette {
  hues: string[]; ink: string; muted: string; paper: string; panel: string; line: string; accent: string; none: string;
  /** The colour of types without a hue. */
  other: string;
  added: string; changed: string; removed: string;
}

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    hues: Array.from({ length: N_HUES }, (_, at) => read(`c${at}`)),
    ink: read("ink"), muted: read("muted"), paper: read("paper"), panel: read("panel"), line: read("line"),
    accent: read("accent"), none: read("none"), other: read("other"),
    added: read("added"), changed: read("changed"), removed: read("removed"),
  };
}

/** How a row of a version differs from the version that it is compared with. */
export type Change = "added" | "changed" | "removed";
export type Changes = Record<"entities" | "relationships" | "communities", ReadonlyMap<number, Change>>;

/** The positions of the hues of types of entities. */
export type TypeHues = ReadonlyMap<string, number> | null;

/** Give hues to the most frequent types; the others share one more colour. */
export function chooseTypeHues(counts: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  const types = Object.entries(counts).filter(([type]) => type).sort(([, one], [, other]) => other - one);
  return new Map(types.slice(0, N_HUES).map(([type], at) => [type, at]));
}

/** What is emphasized. */
export interface Emphasis {
  entities: ReadonlySet<number>;
  relationships: ReadonlySet<number>;
  communities: ReadonlySet<number>;
  /** The places of these communities, which may lie inside closed ones. */
  discs: readonly Disc[];
  selected: { kind: string; number: number } | null;
  /** The only types whose entities are lit; null: any. */
  types: ReadonlySet<string> | null;
  /** Whether what is not lit looks as always. */
  isGentle?: boolean;
  /** Whether all that is drawn of opened communities is lit, because the filters keep it. */
  all: boolean;
}

export const NO_EMPHASIS: Emphasis = {
  entities: new Set(), relationships: new Set(), communities: new Set(), discs: [], selected: null, types: null, all: false,
};

/** What decides how things look. */
export interface Look {
  palette: Palette;
  emphasis: Emphasis;
  /** Colour only what differs from another version; null without a comparison. */
  changes: Changes | null;
  /** The hues of the types of entities; null with a comparison, and until the types are known. */
  typeHues: TypeHues;
  /** Whether types are coloured on communities too, which have no colour of their own then. */
  areasByType: boolean;
}

/** Return whether what is not lit is dimmed. */
export function isDimmed({ entities, relationships, communities, types, isGentle }: Emphasis): boolean {
  return Boolean(types || !isGentle && (entities.size || relationships.size || communities.size));
}

/** Return whether a closed community is lit, or holds one that is lit. */
export function isLitArea({ community, x, y, radius }: Area, { communities, discs }: Emphasis): boolean {
  return communities.has(community) || discs.some((disc) => Math.hypot(disc.x - x, disc.y - y) < radius);
}

/** Return the colour of a community: of its change, or of its own unless something else is coloured. */
export function colourOfArea(area: Area, { palette, changes, areasByType }: Look): string {
  const change = changes?.communities.get(area.community);
  if (change) return palette[change];
  return changes || areasByType ? palette.none : palette.hues[area.hue % N_HUES]!;
}

/** Return the colour of a type of entities. */
export function colourOfType(type: string, palette: Palette, typeHues: ReadonlyMap<string, number>): string {
  const hue = typeHues.get(type);
  return hue === undefined ? palette.other : palette.hues[hue]!;
}

// Maximum number of lit entities that all have their names.
const MAX_FORCED_NAMES = 10;

export interface NodeLook {
  color: string; size: number; label: string | null; forceLabel: boolean; zIndex: number; highlighted: boolean;
}

/** Return the look of an entity. `hue` is that of its community; -1 on a closed one. */
export function lookOfEntity(
  { number, title, type, community, radius }: DrawnEntity, hue: number, size: number, look: Look,
): NodeLook {
  const { palette, emphasis, changes, typeHues, areasByType } = look;
  const { entities, selected, types } = emphasis;
  const isSelected = selected?.kind === "entity" && selected.number === number;
  const isLit = isSelected || (types ? types.has(type) : emphasis.all || entities.has(number) || (community === null && !radius));
  const change = changes?.entities.get(number);
  const isShown = !isDimmed(emphasis) || isLit || Boolean(change);
  const colour = change ? palette[change] : changes ? palette.none
    : typeHues && (areasByType || hue >= 0 || radius) ? colourOfType(type, palette, typeHues) : hue < 0 ? palette.accent : palette.hues[hue % N_HUES]!;
  // Names of many entities would cover each other: then sigma chooses some of them.
  const hasRoom = entities.size <= MAX_FORCED_NAMES && !types;
  const hasPlace = Boolean(radius);
  return {
    color: isSelected ? palette.accent : isShown ? colour : palette.line,
    size: isSelected ? size + 3 : isLit ? size + 1.5 : size,
    label: isShown || hasPlace ? title : null, forceLabel: isSelected || hasPlace || (isLit && hasRoom),
    zIndex: isSelected ? 2 : isLit || change ? 1 : 0, highlighted: isSelected,
  };
}

export interface LineLook { color: string; size: number; zIndex: number }

/** Return the look of a relationship: wider if a text states it. */
export function lookOfRelationship({ number, stated, isLit, isAside }: DrawnRelationship, look: Look): LineLook {
  const { palette, emphasis, changes } = look;
  if (isLit || emphasis.relationships.has(number)) return { color: palette.accent, size: stated ? 2.2 : 1, zIndex: 1 };
  const change = changes?.relationships.get(number);
  if (change) return { color: palette[change], size: stated ? 2 : 1, zIndex: 1 };
  if (changes || (isDimmed(emphasis) && !emphasis.all)) return { color: palette.line, size: 1, zIndex: 0 };
  if (isAside) return { color: palette.line, size: stated ? 2 : 1, zIndex: 0 };
  return { color: stated ? palette.muted : palette.none, size: stated ? 2 : 1, zIndex: 0 };
}
