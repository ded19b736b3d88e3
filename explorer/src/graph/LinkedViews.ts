/** Pictures of the same map that show the same view of it. */

import type { Renderer } from "./renderer";

export class LinkedViews {
  private readonly renderers = new Set<Renderer>();
  private isMoving = false;

  /** Add a picture; it takes the view of the others. Returns whether there is another one. */
  add(renderer: Renderer): boolean {
    this.renderers.add(renderer);
    const other = [...this.renderers].find((each) => each !== renderer);
    if (other) renderer.follow(other);
    return Boolean(other);
  }

  remove(renderer: Renderer): void {
    this.renderers.delete(renderer);
  }

  /** Move the others to the view of one. */
  moved(from: Renderer): void {
    if (this.isMoving) return;
    this.isMoving = true;
    for (const other of this.renderers) if (other !== from) other.follow(from);
    this.isMoving = false;
  }
}
