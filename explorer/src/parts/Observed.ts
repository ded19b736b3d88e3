/** Things that outlive the components which show them, and draw these again when they change. */

import { useLayoutEffect, useState } from "preact/hooks";

export class Observed {
  private readonly listeners = new Set<() => void>();

  /** Call a function after each change; returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  protected notify(): void {
    for (const listener of this.listeners) listener();
  }
}

/** Draw a component again whenever one of some things changes. */
export function useObserved(things: readonly Observed[]): void {
  const [, draw] = useState({});
  // Before anything else runs: what changes between drawing and following would be missed.
  useLayoutEffect(() => {
    const ends = things.map((thing) => thing.subscribe(() => draw({})));
    return () => ends.forEach((end) => end());
  }, things);
}
