/** What is lit in the graph and in the panels, while the reader points at a citation or a row. */

import { createContext, type ComponentChildren } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";

/** Numbers of rows that are lit. */
export interface Highlight {
  entities: readonly number[];
  relationships: readonly number[];
  communities: readonly number[];
  /** What filters light: a sentence if that is a part of what they keep, or else an empty one. */
  filtered?: string;
}

export const NO_HIGHLIGHT: Highlight = { entities: [], relationships: [], communities: [] };

interface HighlightStore {
  /** What is lit while the reader points at something; null if at nothing. */
  pointed: Highlight | null;
  /** What was lit last to stay. */
  kept: Highlight;
  /** Light rows for as long as the reader points at something; null ends it. */
  point(highlight: Highlight | null): void;
  /** Light rows until something else is lit to stay, such as the evidence of an answer. */
  keep(highlight: Highlight): void;
}

const HighlightContext = createContext<HighlightStore | null>(null);

export function HighlightProvider({ children }: { children: ComponentChildren }) {
  const [pointed, point] = useState<Highlight | null>(null);
  const [kept, keep] = useState<Highlight>(NO_HIGHLIGHT);
  const store = useMemo(() => ({ pointed, kept, point, keep }), [pointed, kept]);
  return <HighlightContext.Provider value={store}>{children}</HighlightContext.Provider>;
}

export function useHighlight(): HighlightStore {
  const store = useContext(HighlightContext);
  if (!store) throw new Error("useHighlight needs a HighlightProvider.");
  return store;
}

/** Return properties for an element that lights rows while it is pointed at or focused. */
export function useLighting(highlight: Partial<Highlight>) {
  const { point } = useHighlight();
  const light = () => point({ ...NO_HIGHLIGHT, ...highlight });
  const stop = () => point(null);
  return { onPointerEnter: light, onPointerLeave: stop, onFocus: light, onBlur: stop };
}
