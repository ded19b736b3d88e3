/** What is near one thing, placed to be read: neighbours on rings by strength, and the steps of paths in lanes. */

import type { Entity, IndexData, Paths, Relationship } from "../api";
import type { Surroundings } from "../state";
import { texts } from "../texts";
import type { DrawnEntity, DrawnGraph, DrawnRelationship } from "./drawn";

/** The things around another, as they are loaded. */
export interface Nearby {
  /** What the picture is called. */
  title: string;
  /** The entity in the middle; null: a passage is. */
  centre: number | null;
  entities: readonly Entity[];
  relationships: readonly Relationship[];
  /** The entities in the order in which they are shown, the strongest first. */
  order: readonly number[];
  paths: Paths["paths"];
}

/** Size of the picture in pixels. */
export interface Shape { width: number; height: number }
/** Place what is shown of the things around another in a picture of a shape. */
export type Arrange = (shape: Shape) => DrawnGraph;

/** What is shown in place of the map, and which of its entities are. */
export interface ShownSurroundings {
  nearby: Nearby;
  shown: ReadonlySet<number>;
  /** Null for paths. */
  around: Surroundings | null;
  arrange: Arrange;
}

// Entities that are shown first, and those of a type that is expanded.
const MAX_BEST = 20;
const MAX_EXPANDED = 40;
// Entities of a passage whose relationships are loaded.
const MAX_OF_PASSAGE = 30;
// Entities on the innermost ring, and how many more each next ring has.
const FIRST_RING = 7;
const NEXT_RING = 6;
// Half the size of the map, as a share of the smaller side of a view that shows all of it.
const HALF = 0.45;
// Pixels that names need beside and below the outermost ring.
const MARGIN = { x: 70, y: 34 };
const RADIUS = { least: 5, most: 11, centre: 14 };

/** Load what is near an entity or a passage, with the pinned entities wherever they are. */
export async function readNearby(
  data: IndexData, { kind, number, pinned }: Pick<Surroundings, "kind" | "number" | "pinned">, signal: AbortSignal,
): Promise<Nearby> {
  const isEntity = kind === "entity";
  const { title, entities, relationships } = isEntity
    ? await readNeighbours(data, number, signal) : await readPassage(data, number, signal);
  const known = new Map(entities.map((entity) => [entity.number, entity]));
  const others = pinned.filter((one) => !known.has(one));
  for (const other of await Promise.all(others.map((one) => data.row("entities", one, signal)))) known.set(other.number, other);
  const more = await linksOf(data, isEntity ? others : [...known.keys()], known, signal);
  const links = new Map([...relationships, ...more].map((row) => [row.number, row]));
  const strength = new Map<number, number>();
  for (const { source, target, weight } of links.values()) {
    // Around an entity only the relationships with it count.
    if (isEntity && source !== number && target !== number) continue;
    for (const end of [source, target]) strength.set(end, (strength.get(end) ?? 0) + weight);
  }
  const order = [...known.keys()].filter((one) => !isEntity || one !== number)
    .sort((one, other) => (strength.get(other) ?? 0) - (strength.get(one) ?? 0));
  return {
    title, centre: isEntity ? number : null, entities: [...known.values()], relationships: [...links.values()], order, paths: [],
  };
}

async function readNeighbours(data: IndexData, number: number, signal: AbortSignal) {
  const { entities, relationships } = await data.neighbourhood(number, signal);
  return { title: texts.around.neighbours(entities.find((one) => one.number === number)?.title ?? ""), entities, relationships };
}

async function readPassage(data: IndexData, number: number, signal: AbortSignal) {
  const { entities, document_title } = await data.row("text_units", number, signal);
  return { title: texts.around.passage(document_title), entities: entities.slice(0, MAX_OF_PASSAGE), relationships: [] };
}

/** Return the strongest relationships of entities with known ones. */
async function linksOf(
  data: IndexData, numbers: readonly number[], known: ReadonlyMap<number, Entity>, signal: AbortSignal,
): Promise<Relationship[]> {
  const pages = await Promise.all(numbers.map((number) => data.relationshipsOf(number, null, signal)));
  return pages.flatMap(({ items }) => items.filter(({ source, target }) => known.has(source) && known.has(target)));
}

/** Load the best paths between two entities. */
export async function readPaths(data: IndexData, { from, to }: { from: number; to: number }, signal: AbortSignal): Promise<Nearby> {
  const { paths, entities, relationships } = await data.paths(from, to, signal);
  const title = (number: number) => entities.find((one) => one.number === number)?.title ?? "";
  const order = [...new Set(paths.flatMap((path) => path.entities))];
  return { title: paths.length ? texts.around.paths(title(from), title(to)) : texts.path.none, centre: null, entities, relationships, order, paths };
}

/** How many entities of a type are shown, of all that are there. */
export interface TypeChoice { type: string; shown: number; all: number; isExpanded: boolean; isCollapsed: boolean }

/** Count the entities of each type, those of the most frequent type first. */
export function listTypeChoices(nearby: Nearby, shown: ReadonlySet<number>, around: Surroundings): TypeChoice[] {
  const choices = new Map<string, TypeChoice>();
  const types = new Map(nearby.entities.map(({ number, type }) => [number, type]));
  for (const number of nearby.order) {
    const type = types.get(number)!;
    const before = choices.get(type) ?? {
      type, shown: 0, all: 0, isExpanded: around.expanded.includes(type), isCollapsed: around.collapsed.includes(type),
    };
    choices.set(type, { ...before, all: before.all + 1, shown: before.shown + Number(shown.has(number)) });
  }
  return [...choices.values()].sort((one, other) => other.all - one.all);
}

/** Choose the entities to show: the best of all, all of expanded types, and what is pinned or selected. */
export function chooseShown({ entities, order }: Nearby, around: Surroundings, selected: number | null): Set<number> {
  const { pinned, hidden, expanded, collapsed } = around;
  const types = new Map(entities.map(({ number, type }) => [number, type]));
  const allowed = order.filter((number) => !hidden.includes(number));
  const open = allowed.filter((number) => !collapsed.includes(types.get(number)!));
  return new Set([
    ...open.slice(0, MAX_BEST),
    ...expanded.flatMap((type) => open.filter((number) => types.get(number) === type).slice(0, MAX_EXPANDED)),
    ...allowed.filter((number) => pinned.includes(number) || number === selected),
  ]);
}

/** Place entities on rings, those of a type side by side. */
export function arrangeRings(nearby: Nearby, shown: ReadonlySet<number>, selected: number | null): Arrange {
  const { centre, order, entities, relationships } = nearby;
  const chosen = order.filter((number) => shown.has(number));
  const byNumber = new Map(entities.map((entity) => [entity.number, entity]));
  const types = [...new Set(chosen.map((number) => byNumber.get(number)!.type))];
  const rings = cutRings(chosen);
  return (shape) => {
    const half = halfAxes(shape);
    const share = (ring: number) => (rings.length === 1 ? 0.7 : (ring + 1) / rings.length);
    const placed = rings.flatMap((ring, at) => {
      const rank = (number: number) => types.indexOf(byNumber.get(number)!.type);
      const sorted = [...ring].sort((one, other) => rank(one) - rank(other));
      return sorted.map((number, position) => {
        // Every second ring is turned by half a step, so that names do not stand in one line.
        const angle = 2 * Math.PI * (position + (at % 2) / 2) / sorted.length - Math.PI / 2;
        const strength = 1 - chosen.indexOf(number) / chosen.length;
        return place(byNumber.get(number)!, half.x * share(at) * Math.cos(angle), -half.y * share(at) * Math.sin(angle),
          RADIUS.least + (RADIUS.most - RADIUS.least) * strength);
      });
    });
    if (centre !== null) placed.push(place(byNumber.get(centre)!, 0, 0, RADIUS.centre));
    const touches = ({ source, target }: DrawnRelationship, number: number | null) => source === number || target === number;
    const lines = connect(placed, relationships).map((row) => ({
      ...row, isLit: selected !== centre && touches(row, selected), isAside: centre !== null && !touches(row, centre),
    }));
    const outlines = rings.map((_, at) => ({ x: half.x * share(at), y: half.y * share(at) }));
    return { communities: [], links: [], entities: placed, relationships: lines, outlines };
  };
}

/** Cut a list into rings of which each has more room than the one before; all are equally full. */
function cutRings(numbers: readonly number[]): number[][] {
  const rooms = [FIRST_RING];
  const sum = () => rooms.reduce((all, one) => all + one, 0);
  while (sum() < numbers.length) rooms.push(rooms.at(-1)! + NEXT_RING);
  const fill = numbers.length / sum();
  let start = 0;
  return rooms.map((room, at) => {
    const end = at === rooms.length - 1 ? numbers.length : start + Math.round(room * fill);
    const ring = numbers.slice(start, end);
    start = end;
    return ring;
  });
}

/** Place paths as lanes between their ends, the best one in the middle. */
export function arrangePaths({ entities, relationships, paths }: Nearby): Arrange {
  const byNumber = new Map(entities.map((entity) => [entity.number, entity]));
  return (shape) => {
    const half = halfAxes(shape);
    const placed = new Map<number, DrawnEntity>();
    paths.forEach((path, rank) => {
      const lane = (rank % 2 ? 1 : -1) * Math.ceil(rank / 2) / Math.max(1, Math.ceil((paths.length - 1) / 2));
      path.entities.forEach((number, at) => {
        const isEnd = at === 0 || at === path.entities.length - 1;
        // Neighbours of a lane stand a little above and below each other, so that their names have room.
        const y = isEnd ? 0 : 0.75 * lane + (at % 2 ? 0.06 : -0.06);
        if (placed.has(number)) return;
        const x = 2 * at / (path.entities.length - 1) - 1;
        placed.set(number, place(byNumber.get(number)!, half.x * x, half.y * y, isEnd ? RADIUS.centre : RADIUS.most - 2));
      });
    });
    const all = [...placed.values()];
    return { communities: [], links: [], entities: all, relationships: connect(all, relationships) };
  };
}

/** Return half the width and height of the outermost ring, which leaves room for names in the window. */
function halfAxes({ width, height }: Shape): { x: number; y: number } {
  const unit = HALF * Math.min(width, height) || 1;
  const [x, y] = [(width / 2 - MARGIN.x) / unit, (height / 2 - MARGIN.y) / unit].map((half) => Math.max(0.5, half));
  // A ring that is much wider than high could not be told from a line.
  return { x: Math.min(x!, 1.8 * y!), y: Math.min(y!, 1.8 * x!) };
}

function place({ number, title, type, degree }: Entity, x: number, y: number, radius: number): DrawnEntity {
  return { number, title, type, relationships: degree, community: null, community_title: "", x, y, radius };
}

function connect(placed: readonly DrawnEntity[], relationships: readonly Relationship[]): DrawnRelationship[] {
  const titles = new Map(placed.map(({ number, title }) => [number, title]));
  return relationships.filter(({ source, target }) => titles.has(source) && titles.has(target)).map((row) => {
    const { number, source, target, weight, stated } = row;
    const ends = { source_title: titles.get(source)!, target_title: titles.get(target)! };
    return { number, source, target, ...ends, weight, stated, isLit: false };
  });
}
