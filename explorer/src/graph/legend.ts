/** The meaning of the colours of what is drawn. */

import type { Change, Changes } from "./appearance";
import type { LegendSign } from "./drawing";
import type { DrawnGraph } from "./drawn";
import { texts } from "../texts";

export interface LegendEntry {
  /** The name of the colour in the style sheet, without the dashes. */
  colour: string;
  text: string;
  /** How many of what is drawn have the colour; null: the text says it. */
  count: number | null;
  /** The types of entities that the entry stands for; null for other things. */
  types: ReadonlySet<string> | null;
}

/** Count the drawn entities of each type, and those inside closed communities that show their types. */
export function countTypes({ communities, entities }: DrawnGraph, showsTypes: boolean): Record<string, number> {
  const counts: Record<string, number> = {};
  const add = (type: string, count: number) => { counts[type] = (counts[type] ?? 0) + count; };
  // Entities that are drawn on a closed community are among those inside it.
  for (const { type, community } of entities) if (!showsTypes || community !== null) add(type, 1);
  if (showsTypes) for (const { isOpen, types } of communities) if (!isOpen) types.forEach(([type, count]) => add(type, count));
  return counts;
}

/** List the drawn types with their colours; those without a hue of their own share one entry. */
export function listTypes(typeCounts: Record<string, number>, hues: ReadonlyMap<string, number>): LegendEntry[] {
  const counts = Object.entries(typeCounts);
  const named = counts.filter(([type]) => hues.has(type))
    .sort(([one], [other]) => hues.get(one)! - hues.get(other)!)
    .map(([type, count]) => ({ colour: `c${hues.get(type)}`, text: type, count, types: new Set([type]) }));
  const others = counts.filter(([type]) => !hues.has(type));
  if (!others.length) return named;
  const count = others.reduce((sum, [, each]) => sum + each, 0);
  return [...named, { colour: "other", text: texts.graph.otherTypes, count, types: new Set(others.map(([type]) => type)) }];
}

/** List the kinds of changes with how many rows of the version have each. */
export function listChanges({ entities, relationships, communities }: Changes): LegendEntry[] {
  return (["added", "removed", "changed"] as const).flatMap((kind) => {
    const [nEntities, nRelationships, nCommunities] = [entities, relationships, communities].map((rows) => count(rows, kind));
    const text = texts.versions.changed(kind, nEntities!, nRelationships!, nCommunities!);
    return nEntities! + nRelationships! + nCommunities! ? [{ colour: kind, text, count: null, types: null }] : [];
  });
}

function count(rows: ReadonlyMap<number, Change>, kind: Change): number {
  return [...rows.values()].filter((each) => each === kind).length;
}

/** Return the legend for a saved picture, with the colours that an element of the page has. */
export function writeSigns(entries: readonly LegendEntry[], drawn: DrawnGraph, element: Element): LegendSign[] {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const signs: LegendSign[] = entries.map((entry) => ({
    colour: colour(entry.colour), text: entry.count === null ? entry.text : texts.graph.typeCount(entry.text, entry.count),
  }));
  if (drawn.relationships.some(({ stated }) => stated)) {
    signs.push({ colour: colour("muted"), width: 2, text: texts.graph.stated });
  }
  if (drawn.relationships.some(({ stated }) => !stated)) {
    signs.push({ colour: colour("none"), width: 1, text: texts.graph.counted });
  }
  return signs;
}
