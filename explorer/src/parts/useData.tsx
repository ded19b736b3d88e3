/** The index that the page shows, for components. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { IndexData, IndexSummary } from "../api";

export interface OpenIndex {
  data: IndexData;
  summary: IndexSummary;
}

export const DataContext = createContext<OpenIndex | null>(null);

export function useData(): OpenIndex {
  const open = useContext(DataContext);
  if (!open) throw new Error("useData needs an open index.");
  return open;
}
