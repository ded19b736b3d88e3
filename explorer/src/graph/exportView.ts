/** Files of what the graph shows: pictures, GEXF, and CSV, as which other tables are saved too. */

import type { DrawnGraph } from "./drawn";

/** Forms of the files, by the names that texts.graph.save has for them; pictures first. */
export const EXPORTS = ["svg", "png", "gexf", "communities", "entities", "relationships"] as const;
export type Export = (typeof EXPORTS)[number];

// Time after which the address of a saved file is given up, in milliseconds.
const KEEP_ADDRESS = 60_000;

/** What is saved: the lists of what is drawn, and the picture unless the browser draws none. */
export interface Drawing { drawn: DrawnGraph; writeSvg?: () => string; writePng?: () => Promise<Blob> }

/** Save what is drawn as a file. */
export async function exportView({ drawn, writeSvg, writePng }: Drawing, form: Export): Promise<void> {
  switch (form) {
    case "svg": return save(writeSvg!(), "image/svg+xml", "graph.svg");
    case "png": return save(await writePng!(), "image/png", "graph.png");
    case "gexf": return save(writeGexf(drawn), "application/xml", "graph.gexf");
    case "communities": return save(writeCommunities(drawn), "text/csv", "communities.csv");
    case "entities": return save(writeEntities(drawn), "text/csv", "entities.csv");
    case "relationships": return save(writeRelationships(drawn), "text/csv", "relationships.csv");
  }
}

/** Offer a file to the reader. */
export function save(content: BlobPart, type: string, name: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEEP_ADDRESS);
}

// Units of GEXF in the radius of the map: programs that read it expect coordinates of this size.
const GEXF_RADIUS = 1000;

export function escapeXml(text: string): string {
  // These characters are not allowed in XML, even escaped.
  const allowed = text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "");
  return allowed.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Write a graph as GEXF 1.3: entities and closed communities are nodes. */
function writeGexf({ communities, links, entities, relationships }: DrawnGraph): string {
  const node = (id: string, label: string, values: readonly unknown[], place?: { x: number; y: number }) => {
    const position = place && `<viz:position x="${place.x * GEXF_RADIUS}" y="${place.y * GEXF_RADIUS}" z="0"/>`;
    return `<node id="${id}" label="${escapeXml(label)}"><attvalues>${formatValues(values)}</attvalues>${position ?? ""}</node>`;
  };
  const edge = (id: string, source: string, target: string, weight: number, values: readonly unknown[]) =>
    `<edge id="${id}" source="${source}" target="${target}" weight="${weight}"><attvalues>${formatValues(values)}</attvalues></edge>`;
  const nodes = new Map<string, string>();
  for (const area of [...communities.filter(({ isOpen }) => !isOpen), ...links.flatMap(({ source, target }) => [source, target])]) {
    const id = `c${area.community}`;
    nodes.set(id, node(id, area.title, ["community", "", null, area.community, area.title, area.size], area));
  }
  for (const entity of entities) {
    const { number, title, type, relationships: degree, community, community_title } = entity;
    nodes.set(String(number), node(String(number), title, ["entity", type, degree, community, community_title, null], entity));
  }
  // A line may lead to an entity out of sight, which the format needs as a node.
  for (const { source, target, source_title, target_title } of relationships) {
    for (const [number, title] of [[source, source_title], [target, target_title]] as const) {
      const id = String(number);
      if (!nodes.has(id)) nodes.set(id, node(id, title, ["entity", null, null, null, null, null]));
    }
  }
  const edges = [
    ...links.map(({ source: { community: one }, target: { community: other }, weight }) =>
      edge(`c${one}-c${other}`, `c${one}`, `c${other}`, weight, [null])),
    ...relationships.map(({ number, source, target, weight, stated }) =>
      edge(String(number), String(source), String(target), weight, [stated])),
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
<graph defaultedgetype="undirected">
<attributes class="node">${NODE_ATTRIBUTES.map(([title, type], at) => `<attribute id="${at}" title="${title}" type="${type}"/>`).join("")}</attributes>
<attributes class="edge"><attribute id="0" title="stated" type="boolean"/></attributes>
<nodes>\n${[...nodes.values()].join("\n")}\n</nodes>
<edges>\n${edges.join("\n")}\n</edges>
</graph>
</gexf>
`;
}

const NODE_ATTRIBUTES = [
  ["kind", "string"], ["type", "string"], ["relationships", "integer"], ["community", "integer"],
  ["community_title", "string"], ["entities", "integer"],
] as const;

function formatValues(values: readonly unknown[]): string {
  return values.map((value, at) => (value === null ? "" : `<attvalue for="${at}" value="${escapeXml(String(value))}"/>`)).join("");
}

function writeCommunities({ communities }: DrawnGraph): string {
  const rows = communities.map(({ community, title, size, isOpen, parent, x, y, radius }) =>
    ({ community, title, entities: size, is_open: isOpen, parent, x, y, radius }));
  return writeCsv(["community", "title", "entities", "is_open", "parent", "x", "y", "radius"], rows);
}

function writeEntities({ entities }: DrawnGraph): string {
  return writeCsv(["number", "title", "type", "relationships", "community", "community_title", "x", "y"], entities);
}

/** Write relationships between entities, and the lines between communities, whose number is empty. */
function writeRelationships({ relationships, links }: DrawnGraph): string {
  const between = links.map(({ source, target, weight }) => ({
    ends: "communities", number: null, source: source.community, target: target.community,
    source_title: source.title, target_title: target.title, weight, stated: null,
  }));
  const rows = [...relationships.map((row) => ({ ...row, ends: "entities" })), ...between];
  return writeCsv(["number", "source", "target", "source_title", "target_title", "weight", "stated", "ends"], rows as Record<string, unknown>[]);
}

function writeCsv<Row extends object>(columns: readonly (keyof Row & string)[], rows: readonly Row[]): string {
  return writeTable(columns, rows.map((row) => columns.map((column) => row[column])));
}

/** Write rows of values as CSV; lists and objects become JSON. */
export function writeTable(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [columns, ...rows].map((row) => row.map(formatCell).join(",")).concat("").join("\r\n");
}

function formatCell(value: unknown): string {
  if (value === null || typeof value !== "object" && typeof value !== "string") return String(value ?? "");
  const written = typeof value === "string" ? value : JSON.stringify(value);
  // Spreadsheets run a text that begins with one of these characters as a formula.
  const text = /^[=+\-@\t\r]/.test(written) ? `'${written}` : written;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
