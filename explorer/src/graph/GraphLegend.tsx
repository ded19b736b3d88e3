/** The legend of the graph, which says what the colours mean; pointing at a type lights its entities. */

import type { ComponentChildren } from "preact";
import { texts } from "../texts";
import type { Changes } from "./appearance";
import type { LegendSign } from "./drawing";
import type { DrawnGraph } from "./drawn";

interface GraphLegendProps {
  entries: readonly LegendEntry[];
  /** Whether the entries are types; there may be none in sight. */
  byType: boolean;
  /** The types that stay lit; null: none. */
  litTypes: ReadonlySet<string> | null;
  /** Light types while they are pointed at, or for good; null ends it. */
  onPoint: (types: ReadonlySet<string> | null) => void;
  onKeep: (types: ReadonlySet<string> | null) => void;
  /** Stands in the place of the types. */
  children?: ComponentChildren;
}

export function GraphLegend({ entries, byType, litTypes, onPoint, onKeep, children }: GraphLegendProps) {
  return (
    <div class="graph-legend">
      {children || (byType || !entries.length) && (
        <div class="type-legend" role="group" aria-label={texts.graph.lightType}>
          {byType && entries.map(({ colour, text, count, types }) => {
            const isLit = [...litTypes ?? []].join() === [...types ?? []].join();
            return (
              <button key={text} type="button" aria-pressed={isLit}
                onPointerEnter={() => onPoint(types)} onPointerLeave={() => onPoint(null)}
                onFocus={() => onPoint(types)} onBlur={() => onPoint(null)}
                onClick={() => onKeep(isLit ? null : types)}>
                <Dot colour={colour} /><span dir="auto">{text}</span> <span class="count">{texts.number(count ?? 0)}</span>
              </button>
            );
          })}
        </div>
      )}
      {entries.map(({ colour, text, types }) => !types && <span key={text}><Dot colour={colour} />{text}</span>)}
      <span><span class="stated-line" aria-hidden="true" />{texts.statedByText}</span>
      <span><span class="counted-line" aria-hidden="true" />{texts.countedTogether}</span>
    </div>
  );
}

export function Dot({ colour }: { colour: string }) {
  return <span class="legend-dot" style={{ background: `var(--${colour})` }} aria-hidden="true" />;
}

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
    const [nEntities, nRelationships, nCommunities] = [entities, relationships, communities]
      .map((rows) => [...rows.values()].filter((each) => each === kind).length);
    const text = texts.versions.changed(kind, nEntities!, nRelationships!, nCommunities!);
    return nEntities! + nRelationships! + nCommunities! ? [{ colour: kind, text, count: null, types: null }] : [];
  });
}

/** Return the legend for a saved picture, with the colours that an element of the page has. */
export function writeSigns(entries: readonly LegendEntry[], drawn: DrawnGraph, element: Element): LegendSign[] {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const signs: LegendSign[] = entries.map((entry) => ({
    colour: colour(entry.colour), text: entry.count === null ? entry.text : texts.graph.typeCount(entry.text, entry.count),
  }));
  if (drawn.relationships.some(({ stated }) => stated)) {
    signs.push({ colour: colour("muted"), width: 2, text: texts.statedByText });
  }
  if (drawn.relationships.some(({ stated }) => !stated)) {
    signs.push({ colour: colour("none"), width: 1, text: texts.countedTogether });
  }
  return signs;
}
