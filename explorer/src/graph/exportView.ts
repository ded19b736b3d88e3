/** Files of what the graph shows: pictures, and the drawn entities and relationships. */

import type { DrawnGraph } from "./drawn";
import { writeCommunities, writeEntities, writeGexf, writeRelationships } from "./exportTables";

/** Forms of the files, by the names that texts.graph.save has for them; pictures first. */
export const EXPORTS = ["svg", "png", "gexf", "communities", "entities", "relationships"] as const;
export type Export = (typeof EXPORTS)[number];

// Time after which the address of a saved file is given up, in milliseconds.
const KEEP_ADDRESS = 60_000;

/** What is saved: the lists of what is drawn, and the picture unless the browser draws none. */
export interface Drawing {
  drawn: DrawnGraph;
  writeSvg?: () => string;
  writePng?: () => Promise<Blob>;
}

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
