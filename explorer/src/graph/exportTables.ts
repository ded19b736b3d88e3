/** The entities and relationships that are drawn, as GEXF and CSV. */

import type { Emphasis } from "./renderer";
import type { Scene } from "./scene";

export interface DrawnEntity {
  number: number; title: string; type: string; relationships: number | null;
  /** The community inside which the entity is drawn; null if its community is closed. */
  community: number | null; community_title: string;
  x: number; y: number;
}
export interface DrawnRelationship {
  number: number; source: number; target: number; weight: number; stated: boolean;
}
export interface DrawnGraph { entities: DrawnEntity[]; relationships: DrawnRelationship[] }

// Units of GEXF in the radius of the map: programs that read it expect coordinates of this size.
const GEXF_RADIUS = 1000;

/** Collect what opened communities hold, and what is drawn because it is emphasized. */
export function collectDrawn(scene: Scene, { places, links }: Pick<Emphasis, "places" | "links">): DrawnGraph {
  const entities = new Map<number, DrawnEntity>();
  const relationships = new Map<number, DrawnRelationship>();
  for (const part of scene.openParts()) {
    if (part.kind !== "entities") continue;
    const { community } = part;
    const home = scene.disc(community);
    part.number.forEach((number, at) => entities.set(number, {
      number, title: part.title[at]!, type: part.type[at] ?? "", relationships: part.size[at]!,
      community, community_title: scene.areas.get(community)?.title ?? "",
      x: home.x + home.radius * part.x[at]!, y: home.y + home.radius * part.y[at]!,
    }));
    part.relationship.forEach((number, at) => relationships.set(number, {
      number, source: part.number[part.source[at]!]!, target: part.number[part.target[at]!]!,
      weight: part.weight[at]!, stated: Boolean(part.stated[at]),
    }));
  }
  for (const { number, title, type, x, y } of places) {
    if (entities.has(number)) continue;
    entities.set(number, { number, title, type, relationships: null, community: null, community_title: "", x, y });
  }
  for (const { number, source, target, weight, stated } of links) {
    if (entities.has(source) && entities.has(target)) {
      relationships.set(number, { number, source, target, weight, stated });
    }
  }
  return { entities: [...entities.values()], relationships: [...relationships.values()] };
}

export function escapeXml(text: string): string {
  // These characters are not allowed in XML, even escaped.
  const allowed = text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "");
  return allowed.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Write a graph as GEXF 1.3, with the communities as attributes of the nodes. */
export function writeGexf({ entities, relationships }: DrawnGraph): string {
  const nodes = entities.map(({ number, title, x, y, type, relationships: degree, community, community_title }) => {
    const values = formatValues([type, degree, community, community_title]);
    const place = `<viz:position x="${x * GEXF_RADIUS}" y="${y * GEXF_RADIUS}" z="0"/>`;
    return `<node id="${number}" label="${escapeXml(title)}"><attvalues>${values}</attvalues>${place}</node>`;
  });
  const edges = relationships.map(({ number, source, target, weight, stated }) =>
    `<edge id="${number}" source="${source}" target="${target}" weight="${weight}">`
    + `<attvalues>${formatValues([stated])}</attvalues></edge>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
<graph defaultedgetype="undirected">
<attributes class="node"><attribute id="0" title="type" type="string"/><attribute id="1" title="relationships" type="integer"/>\
<attribute id="2" title="community" type="integer"/><attribute id="3" title="community_title" type="string"/></attributes>
<attributes class="edge"><attribute id="0" title="stated" type="boolean"/></attributes>
<nodes>\n${nodes.join("\n")}\n</nodes>
<edges>\n${edges.join("\n")}\n</edges>
</graph>
</gexf>
`;
}

function formatValues(values: readonly unknown[]): string {
  return values.map((value, at) => (value === null ? "" : `<attvalue for="${at}" value="${escapeXml(String(value))}"/>`)).join("");
}

export function writeEntities({ entities }: DrawnGraph): string {
  return writeCsv(["number", "title", "type", "relationships", "community", "community_title", "x", "y"], entities);
}

export function writeRelationships({ entities, relationships }: DrawnGraph): string {
  const titles = new Map(entities.map(({ number, title }) => [number, title]));
  const rows = relationships.map((row) => (
    { ...row, source_title: titles.get(row.source), target_title: titles.get(row.target) }
  ));
  return writeCsv(["number", "source", "target", "source_title", "target_title", "weight", "stated"], rows);
}

function writeCsv<Row extends object>(columns: readonly (keyof Row & string)[], rows: readonly Row[]): string {
  const lines = rows.map((row) => columns.map((column) => formatCell(row[column])).join(","));
  return [columns.join(","), ...lines, ""].join("\r\n");
}

function formatCell(value: unknown): string {
  if (typeof value !== "string") return String(value ?? "");
  // Spreadsheets run a text that begins with one of these characters as a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
