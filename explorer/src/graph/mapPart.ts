/** Parts of the map: the things inside a community as typed arrays, as the server sends them. */

/** The number of the part that holds the communities of the coarsest level. */
export const ROOT = -1;

export interface MapPart {
  version: number;
  /** The community whose inside this is, or ROOT. */
  community: number;
  kind: "communities" | "entities";
  title: string[];
  /** Types of entities. */
  type: string[];
  /** The most frequent types of the index; empty for a part of entities. */
  types: string[];
  /** For each community its entities of each of `types`, and then those of other types. */
  typeCounts: Int32Array;
  /** How many things beyond the limit are not in the part. */
  leftOut: number;
  number: Int32Array;
  /** Entities of a community, or relationships of an entity. */
  size: Int32Array;
  /** Children of a community; 0: it holds entities. */
  children: Int32Array;
  /** Places in the unit disc of the community. */
  x: Float32Array;
  y: Float32Array;
  radius: Float32Array;
  /** Relationships between two things of the part, by their positions in it. */
  source: Int32Array;
  target: Int32Array;
  weight: Float32Array;
  /** Numbers of the relationships; empty for sums between communities. */
  relationship: Int32Array;
  /** 1: a text states the relationship; 0: both ends are only named in the same passages. */
  stated: Uint8Array;
}

/** A thing at its place in the unit disc of the whole map. */
export interface Place { number: number; title: string; type: string; x: number; y: number; radius: number }

export function placesOf(rows: readonly { x: number; y: number }[]) {
  return { x: Float32Array.from(rows, ({ x }) => x), y: Float32Array.from(rows, ({ y }) => y) };
}

type PlacedEntity = Omit<Place, "radius"> & { degree: number };
interface Link { number: number; source: number; target: number; weight: number; stated: boolean }

/** Make the part that holds entities, with the relationships between them, of rows. */
export function makeEntityPart(
  version: number, community: number, entities: readonly PlacedEntity[], relationships: readonly Link[], leftOut = 0,
): MapPart {
  const position = new Map(entities.map(({ number }, at) => [number, at]));
  const inside = relationships.filter(({ source, target }) => position.has(source) && position.has(target));
  return {
    version, community, kind: "entities", title: entities.map(({ title }) => title), type: entities.map(({ type }) => type),
    types: [], typeCounts: new Int32Array(), leftOut,
    number: Int32Array.from(entities, ({ number }) => number), size: Int32Array.from(entities, ({ degree }) => degree),
    children: new Int32Array(), ...placesOf(entities), radius: new Float32Array(),
    source: Int32Array.from(inside, ({ source }) => position.get(source)!),
    target: Int32Array.from(inside, ({ target }) => position.get(target)!),
    weight: Float32Array.from(inside, ({ weight }) => weight),
    relationship: Int32Array.from(inside, ({ number }) => number),
    stated: Uint8Array.from(inside, ({ stated }) => Number(stated)),
  };
}

interface Header {
  version: number; community: number; kind: MapPart["kind"]; title: string[]; type?: string[]; types?: string[];
  left_out: number;
  arrays: Record<string, { type: "i32" | "f32" | "u8"; offset: number; length: number }>;
}

/** Parse a part; graphrag_server/graph_map.py describes the format. */
export function parseMapPart(content: ArrayBuffer): MapPart {
  const headerLength = new DataView(content).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(content, 4, headerLength));
  const header = JSON.parse(text) as Header;
  const array = (name: string) => {
    const { offset, length } = header.arrays[name] ?? { offset: 0, length: 0 };
    return [content, 4 + headerLength + offset, length] as const;
  };
  return {
    version: header.version, community: header.community, kind: header.kind,
    title: header.title, type: header.type ?? [], types: header.types ?? [],
    typeCounts: new Int32Array(...array("type_counts")), leftOut: header.left_out,
    number: new Int32Array(...array("number")), size: new Int32Array(...array("size")),
    children: new Int32Array(...array("children")),
    x: new Float32Array(...array("x")), y: new Float32Array(...array("y")),
    radius: new Float32Array(...array("radius")),
    source: new Int32Array(...array("source")), target: new Int32Array(...array("target")),
    weight: new Float32Array(...array("weight")),
    relationship: new Int32Array(...array("relationship")),
    stated: new Uint8Array(...array("stated")),
  };
}
