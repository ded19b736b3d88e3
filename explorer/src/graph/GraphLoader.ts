/** Loading of the parts of the map that a view needs. */

import { filterQuery, type IndexData, type Query } from "../api";
import type { Filters } from "../state";
import { texts } from "../texts";
import type { GraphCamera, GraphContent } from "./content";
import { ROOT } from "./mapPart";
import { type Disc, MAX_THINGS, Scene } from "./scene";

const MAX_KEPT_PARTS = 400;
const MAX_LOADS = 4;
// Rows of one page of entities that the filters keep.
const PAGE = 500;
export const WHOLE: Disc = { x: 0, y: 0, radius: 1 };

export class GraphLoader {
  private readonly loading = new Map<string, AbortController>();
  private filters: Query | null = null;

  /** `onStatus` gets a sentence on what is missing from the picture; empty: nothing is. */
  constructor(
    private readonly content: GraphContent, private readonly camera: GraphCamera,
    private readonly onStatus: (status: string) => void,
  ) {}

  /** Show the whole map of an index, or one community alone. Without `moves` the view stays. */
  async begin(data: IndexData, only: number | null, moves: boolean, signal: AbortSignal): Promise<void> {
    this.stop();
    const root = only ?? ROOT;
    const disc = root === ROOT ? WHOLE : (await data.places([], [root], [], signal)).communities[0] ?? WHOLE;
    if (signal.aborted) return;
    this.content.scene = new Scene(root, disc);
    if (this.content.kept) this.content.kept = new Map();
    this.camera.update();
    const shows = moves && !this.content.arrange;
    if (shows) this.camera.moveTo(disc, true);
    this.loadPart(data, root, shows ? disc : null);
  }

  /** Load what is missing, after a server that did not answer is back. */
  resume(data: IndexData): void {
    this.onStatus("");
    const { scene } = this.content;
    if (scene.parts.has(scene.root)) this.follow(data);
    else this.loadPart(data, scene.root);
  }

  /** Open and close communities as the view asks for it. */
  follow(data: IndexData): void {
    const { arrange, scene } = this.content;
    if (arrange) return;
    const before = scene.openParts().length;
    for (const community of scene.follow(this.camera.view()).slice(0, MAX_LOADS)) this.loadPart(data, community);
    if (scene.openParts().length !== before) this.camera.update();
    this.loadKept(data);
  }

  /** Draw only the entities that filters keep; null: all. */
  setFilters(data: IndexData, filters: Filters | null): void {
    this.filters = filters && filterQuery(filters);
    this.content.kept = filters && new Map();
    this.camera.update();
    this.loadKept(data);
  }

  /** Give up what is being loaded. */
  stop(): void {
    for (const controller of this.loading.values()) controller.abort();
    this.loading.clear();
  }

  /** The view moves to all that the part holds, if it still is at `from`. */
  private loadPart(data: IndexData, community: number, from: Disc | null = null): void {
    this.load(`part ${community}`, async (signal) => {
      const part = await data.mapPart(community, signal);
      if (signal.aborted) return;
      const { scene } = this.content;
      scene.add(part);
      scene.forget(MAX_KEPT_PARTS);
      this.camera.update();
      if (from && this.camera.target === from && !this.content.arrange) this.camera.moveTo(scene.whole(), true);
      this.onStatus(part.leftOut ? texts.graph.leftOut(part.leftOut) : "");
      // What the part holds may be large enough to be opened too.
      this.follow(data);
    });
  }

  /** Load which entities of opened communities the filters keep. */
  private loadKept(data: IndexData): void {
    const { filters, content: { kept, scene } } = this;
    if (!filters || !kept) return;
    for (const { community, kind } of scene.openParts()) {
      if (kind !== "entities" || kept.has(community)) continue;
      this.load(`kept ${community} ${JSON.stringify(filters)}`, async (signal) => {
        const numbers = new Set<number>();
        let cursor: string | null = null;
        do {
          const inside: Query = community === ROOT ? {} : { community };
          const page: { items: { number: number }[]; next_cursor: string | null } =
            await data.page("entities", { ...filters, ...inside, cursor, limit: PAGE }, signal);
          for (const { number } of page.items) numbers.add(number);
          cursor = page.next_cursor;
        } while (cursor !== null && numbers.size < MAX_THINGS);
        if (signal.aborted || filters !== this.filters) return;
        this.content.kept = new Map([...this.content.kept ?? [], [community, numbers]]);
        this.camera.update();
      });
    }
  }

  private load(key: string, read: (signal: AbortSignal) => Promise<void>): void {
    if (this.loading.has(key)) return;
    const controller = new AbortController();
    this.loading.set(key, controller);
    read(controller.signal)
      .catch((error: unknown) => {
        if (!controller.signal.aborted) this.onStatus(error instanceof Error ? error.message : String(error));
      })
      .finally(() => { if (this.loading.get(key) === controller) this.loading.delete(key); });
  }
}
