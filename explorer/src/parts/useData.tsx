/** The index that the page shows, for components. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { IndexData, IndexSummary } from "../api";
import type { Management } from "../manage/management";

export interface OpenIndex {
  data: IndexData;
  summary: IndexSummary;
  /** The files and runs of the index; absent without a server. */
  manage?: Management;
}

export const DataContext = createContext<OpenIndex | null>(null);

export function useData(): OpenIndex {
  const open = useContext(DataContext);
  if (!open) throw new Error("useData needs an open index.");
  return open;
}
