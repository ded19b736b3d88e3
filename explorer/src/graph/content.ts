/** What a view of the graph consists of, and the views that show it. */

import { type Changes, type Emphasis, NO_EMPHASIS, type TypeHues } from "./appearance";
import { collectDrawn, type DrawnGraph, type KeptEntities, keepVisible, type LitThings, NOTHING_DRAWN } from "./drawn";
import { ROOT } from "./mapPart";
import { type Disc, Scene, type View } from "./scene";

export class GraphContent {
  scene = new Scene(ROOT);
  lit: LitThings = { places: [], links: [] };
  /** What the filters keep; null without filters. */
  kept: KeptEntities | null = null;
  emphasis: Emphasis = NO_EMPHASIS;
  changes: Changes | null = null;
  typeHues: TypeHues = null;
  /** All that is drawn, in sight and out of it, since the last collection. */
  drawn: DrawnGraph = NOTHING_DRAWN;

  /** `onCollect` is called when other things may be drawn than before. */
  constructor(private readonly onCollect: () => void) {}

  collect(): DrawnGraph {
    this.drawn = collectDrawn(this.scene, this.lit, this.kept);
    this.onCollect();
    return this.drawn;
  }

  /** Whether closed communities show the types of their entities; filters may keep only some of these. */
  get showsTypes(): boolean {
    return this.typeHues !== null && this.changes === null && this.kept === null;
  }

  inSight(view: View): DrawnGraph {
    return keepVisible(this.drawn, view);
  }
}

/** A view of the map that the reader moves. */
export interface GraphCamera {
  view(): View;
  /** Move the view so that a disc fills it. */
  moveTo(disc: Disc, quickly?: boolean): void;
  zoom(factor: number): void;
  /** Move the view by shares of its size. */
  pan(right: number, down: number): void;
  /** Show the content as it is now. */
  update(): void;
}

// Half the width and height of the screen that a table without a drawing stands for, in pixels.
const HALF = 400;

/** The view of a table where the browser draws nothing. */
export class PlainCamera implements GraphCamera {
  private x = 0;
  private y = 0;
  private scale = HALF;

  constructor(private readonly content: GraphContent, private readonly onView: () => void) {}

  view(): View {
    const half = HALF / this.scale;
    return { x: this.x, y: this.y, halfWidth: half, halfHeight: half, scale: this.scale };
  }

  moveTo({ x, y, radius }: Disc): void {
    Object.assign(this, { x, y, scale: HALF / radius });
    this.onView();
  }

  zoom(factor: number): void {
    this.scale = Math.max(HALF, this.scale * factor);
    this.onView();
  }

  pan(right: number, down: number): void {
    const width = 2 * HALF / this.scale;
    Object.assign(this, { x: this.x + width * right, y: this.y - width * down });
    this.onView();
  }

  update(): void {
    this.content.collect();
    this.onView();
  }
}
