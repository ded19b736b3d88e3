/** Files of what the graph shows: pictures, and the drawn entities and relationships. */

import { writeEntities, writeGexf, writeRelationships } from "./exportTables";
import type { Renderer } from "./renderer";

/** Forms of the files, by the names that texts.graph.save has for them. */
export const EXPORTS = ["svg", "png", "gexf", "entities", "relationships"] as const;
export type Export = (typeof EXPORTS)[number];

// Time after which the address of a saved file is given up, in milliseconds.
const KEEP_ADDRESS = 60_000;

/** Save what is drawn as a file. Return false if the form holds entities and none is drawn. */
export async function exportView(renderer: Renderer, form: Export): Promise<boolean> {
  if (form === "svg") save([renderer.writeSvg()], "image/svg+xml", "graph.svg");
  else if (form === "png") save([await renderer.writePng()], "image/png", "graph.png");
  else {
    const drawn = renderer.drawnGraph();
    if (!drawn.entities.length) return false;
    if (form === "gexf") save([writeGexf(drawn)], "application/xml", "graph.gexf");
    else if (form === "entities") save([writeEntities(drawn)], "text/csv", "entities.csv");
    else save([writeRelationships(drawn)], "text/csv", "relationships.csv");
  }
  return true;
}

function save(content: BlobPart[], type: string, name: string): void {
  const address = URL.createObjectURL(new Blob(content, { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEEP_ADDRESS);
}
