/** What a view of the graph consists of, and the views that show it. */

import { type Changes, type Emphasis, NO_EMPHASIS, type TypeHues } from "./appearance";
import { collectDrawn, type DrawnGraph, type KeptEntities, keepVisible, type LitThings, NOTHING_DRAWN } from "./drawn";
import { ROOT } from "./mapPart";
import { type Part, scaleOf, Scene, type View } from "./scene";
import type { Arrange, Shape } from "./surroundings";

// Half the width and height of the screen that a table without a drawing stands for, in pixels.
const HALF = 400;

export class GraphContent {
  scene = new Scene(ROOT);
  lit: LitThings = { places: [], links: [] };
  /** What the filters keep; null without filters. */
  kept: KeptEntities | null = null;
  emphasis: Emphasis = NO_EMPHASIS;
  changes: Changes | null = null;
  typeHues: TypeHues = null;
  areasByType = false;
  /** Places what is drawn instead of the map; null: the map is drawn. */
  arrange: Arrange | null = null;
  shape: Shape = { width: 2 * HALF, height: 2 * HALF };
  /** All that is drawn, in sight and out of it, since the last collection. */
  drawn: DrawnGraph = NOTHING_DRAWN;

  /** `onCollect` is called when other things may be drawn than before. */
  constructor(private readonly onCollect: () => void) {}

  collect(): DrawnGraph {
    this.drawn = this.arrange?.(this.shape) ?? collectDrawn(this.scene, this.lit, this.kept);
    this.onCollect();
    return this.drawn;
  }

  /** Whether closed communities show the types of their entities; filters may keep only some of these. */
  get showsTypes(): boolean {
    return this.areasByType && this.typeHues !== null && this.arrange === null && this.changes === null && this.kept === null;
  }

  inSight(view: View): DrawnGraph {
    return keepVisible(this.drawn, view);
  }
}

/** A view of the map that the reader moves. */
export interface GraphCamera {
  view(): View;
  /** The part that the view has moved to; null once the reader has moved the view. */
  readonly target: Part | null;
  /** Move the view so that a part of the map fills it. */
  moveTo(part: Part, quickly?: boolean): void;
  zoom(factor: number): void;
  /** Move the view by shares of its size. */
  pan(right: number, down: number): void;
  /** Show the content as it is now. */
  update(): void;
}

/** The view of a table where the browser draws nothing. */
export class PlainCamera implements GraphCamera {
  private x = 0;
  private y = 0;
  private scale = HALF;
  target: Part | null = null;

  constructor(private readonly content: GraphContent, private readonly onView: () => void) {}

  view(): View {
    const half = HALF / this.scale;
    return { x: this.x, y: this.y, halfWidth: half, halfHeight: half, scale: this.scale };
  }

  moveTo(part: Part): void {
    Object.assign(this, { target: part, x: part.x, y: part.y, scale: scaleOf(part, HALF, HALF) });
    this.onView();
  }

  zoom(factor: number): void {
    this.scale = Math.max(HALF / 2, this.scale * factor);
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
