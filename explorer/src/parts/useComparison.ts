/** The comparison of the shown version with another one, and the changed rows of the graph. */

import type { ChangedTable } from "../api";
import type { Change, Changes } from "../graph/drawing";
import { useAddress } from "./useAddress";
import { useData } from "./useData";
import { useLoaded } from "./useLoaded";

// Maximum number of rows of each table and kind of change that the graph colours: one page of the server.
const MAX_COLOURED = 10_000;

/** Return the two compared versions; null if none is compared. */
export function useComparison(): { from: number; to: number } | null {
  const { address: { compare: from, version } } = useAddress();
  const { data, summary } = useData();
  const to = version ?? summary.version;
  return from !== null && from !== to && data.changedRows ? { from, to } : null;
}

/** Load the changed rows that the graph draws; null without a comparison. */
export function useChanges(): Changes | null {
  const { data, summary } = useData();
  const comparison = useComparison();
  const loaded = useLoaded(async (signal) => {
    if (!comparison) return null;
    const read = async (table: ChangedTable) => {
      const found = new Map<number, Change>();
      for (const kind of ["added", "changed"] as const) {
        const { items } = await data.changedRows!(table, { ...comparison, kind, limit: MAX_COLOURED }, signal);
        for (const { after } of items) if (after !== null) found.set(after, kind);
      }
      return found;
    };
    const [entities, relationships, communities] =
      await Promise.all([read("entities"), read("relationships"), read("communities")]);
    return { entities, relationships, communities };
  }, [summary.name, comparison]);
  return loaded.value ?? null;
}
