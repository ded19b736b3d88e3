/** Pictures of the versions of an index: they show the same part of the map. */

import type { CameraState } from "sigma/types";
import type { Renderer } from "./renderer";

export class LinkedViews {
  private static readonly byIndex = new Map<string, LinkedViews>();
  private readonly renderers = new Set<Renderer>();
  private last: CameraState | null = null;
  private isMoving = false;

  /** Return the views of an index. They stay while other versions of it are shown. */
  static of(index: string): LinkedViews {
    const known = LinkedViews.byIndex.get(index) ?? new LinkedViews();
    LinkedViews.byIndex.set(index, known);
    return known;
  }

  /** Add a picture, which takes the view of the others. Returns whether there is a view to take. */
  add(renderer: Renderer): boolean {
    this.renderers.add(renderer);
    if (this.last) renderer.camera = this.last;
    return this.last !== null;
  }

  remove(renderer: Renderer): void {
    this.renderers.delete(renderer);
  }

  /** Move the others to the view of one. */
  moved(from: Renderer): void {
    if (this.isMoving) return;
    this.isMoving = true;
    this.last = from.camera;
    for (const other of this.renderers) if (other !== from) other.camera = this.last;
    this.isMoving = false;
  }
}
