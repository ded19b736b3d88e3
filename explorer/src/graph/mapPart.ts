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
export interface Place {
  number: number; title: string; type: string; x: number; y: number; radius: number;
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
