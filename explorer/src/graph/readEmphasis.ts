/** What of the graph is lit, and where the view moves for a selection. */

import type { IndexData } from "../api";
import type { Highlight, Selection } from "../state";
import { type Emphasis, NO_EMPHASIS } from "./appearance";
import type { LitThings } from "./drawn";
import type { Disc } from "./scene";
import type { ShownSurroundings } from "./surroundings";

const MAX_LIT = 200;

/** Read the places of what is selected and lit, so that it is drawn on closed communities too. */
export async function readEmphasis(
  data: IndexData, selection: Selection | null, highlight: Highlight, signal: AbortSignal,
): Promise<{ emphasis: Emphasis; lit: LitThings }> {
  const entities = new Set(highlight.entities.slice(0, MAX_LIT));
  const relationships = new Set(highlight.relationships.slice(0, MAX_LIT));
  const communities = new Set(highlight.communities);
  if (selection?.kind === "relationship") relationships.add(selection.number);
  if (selection?.kind === "entity") {
    entities.add(selection.number);
    if (!highlight.entities.length && !highlight.relationships.length) {
      const { items } = await data.relationshipsOf(selection.number, null, signal);
      for (const { number } of items) relationships.add(number);
    }
  }
  const selected = selection && { kind: selection.kind, number: selection.number };
  const emphasis = {
    ...NO_EMPHASIS, entities, relationships, communities, selected, all: highlight.filtered !== undefined && !selection,
  };
  if (!entities.size && !relationships.size && !communities.size) return { emphasis, lit: { places: [], links: [] } };
  const places = await data.places([...entities], [...communities].slice(0, MAX_LIT), [...relationships], signal);
  for (const { number } of places.entities) entities.add(number);
  return {
    emphasis: { ...emphasis, discs: places.communities },
    lit: { places: places.entities, links: places.relationships },
  };
}

/** Return what is emphasized of what surrounds a thing: the selection, and what the reader points at. */
export function emphasizeArranged(
  { nearby, shown }: ShownSurroundings, selection: Selection | null, highlight: Highlight,
): Emphasis {
  const entities = new Set(highlight.entities.filter((number) => shown.has(number) || number === nearby.centre));
  const relationships = new Set(highlight.relationships);
  if (nearby.paths.length) {
    // Of several paths the best one is lit until another one is pointed at.
    if (!entities.size) for (const number of nearby.paths[0]!.relationships) relationships.add(number);
  } else if (!relationships.size) {
    for (const { number, source, target } of nearby.relationships) {
      if (entities.has(source) || entities.has(target)) relationships.add(number);
    }
  }
  if (selection?.kind === "relationship") relationships.add(selection.number);
  const selected = selection && { kind: selection.kind, number: selection.number };
  return { ...NO_EMPHASIS, isGentle: true, selected, entities, relationships };
}

/** Return the disc to which the view moves for a selection, if it has a place. */
export async function findDisc(data: IndexData, selection: Selection, signal: AbortSignal): Promise<Disc | null> {
  if (selection.kind === "community") {
    return (await data.places([], [selection.number], [], signal)).communities[0] ?? null;
  }
  if (selection.kind !== "entity") return null;
  const { communities } = await data.row("entities", selection.number, signal);
  const deepest = communities.at(-1);
  return deepest ? (await data.places([], [deepest.community], [], signal)).communities[0] ?? null : null;
}
