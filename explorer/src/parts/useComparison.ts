/** The comparison of the shown version with another one, and the changed rows of the graph. */

import type { ChangedRow, ChangedRows, ChangedTable } from "../api";
import type { Change, Changes } from "../graph/appearance";
import { useAddress } from "../state";
import { useData, useLoaded } from "./useData";

// Maximum rows of a page of the server, and pages that are read of each table.
const PAGE = 10_000;
const MAX_PAGES = 5;

/** The two compared versions, the earlier first. */
export interface Comparison { from: number; to: number }

/** Return the two compared versions; null if none is compared. */
export function useComparison(): Comparison | null {
  const { address: { compare, version } } = useAddress();
  const { data, summary } = useData();
  const shown = version ?? summary.version;
  if (compare === null || compare === shown || !data.changedRows || !data.atVersion) return null;
  return { from: Math.min(shown, compare), to: Math.max(shown, compare) };
}

/** The changed rows by their numbers in the earlier and in the later version. */
export interface ChangesOfBoth { before: Changes; after: Changes }

/** Load the changed rows that the graph draws; null without a comparison. */
export function useChanges(): ChangesOfBoth | null {
  const { data, summary } = useData();
  const comparison = useComparison();
  const loaded = useLoaded(async (signal) => {
    if (!comparison) return null;
    const read = async (table: ChangedTable) => {
      const rows: ChangedRow[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < MAX_PAGES && (page === 0 || cursor); page += 1) {
        const found: ChangedRows = await data.changedRows!(table, { ...comparison, cursor, limit: PAGE }, signal);
        rows.push(...found.items);
        cursor = found.next_cursor;
      }
      return { before: numberChanges(rows, "before"), after: numberChanges(rows, "after") };
    };
    const [entities, relationships, communities] =
      await Promise.all([read("entities"), read("relationships"), read("communities")]);
    const side = (name: "before" | "after"): Changes =>
      ({ entities: entities[name], relationships: relationships[name], communities: communities[name] });
    return { before: side("before"), after: side("after") };
  }, [summary.name, comparison]);
  return loaded.value ?? null;
}

/** Return the kind of change by number in a version. A renamed row counts as changed. */
function numberChanges(rows: readonly ChangedRow[], side: "before" | "after"): ReadonlyMap<number, Change> {
  return new Map(rows.flatMap((row): [number, Change][] => {
    const number = row[side];
    return number === null ? [] : [[number, row.kind === "renamed" ? "changed" : row.kind]];
  }));
}
