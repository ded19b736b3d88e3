/** A table that readers sort by its columns: here, or where a list of many rows comes from. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { texts } from "../texts";
import { More } from "./PagedList";

export interface Column<Row> {
  title: string;
  /** What the column is sorted by: numbers from the largest, texts from A. */
  value: (row: Row) => string | number;
  /** What the cell shows; the value if it is absent. */
  cell?: (row: Row) => ComponentChildren;
}

interface SortedTableProps<Row> {
  caption: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** Position of the column by which the rows are sorted, at first or by `onSort`; -1: they keep their order. */
  sortedBy: number;
  /** Called instead of sorting the rows; these are then a part of `total`. */
  onSort?: (position: number) => void;
  total?: number | null;
  keyOf: (row: Row) => string | number;
  isLit?: (row: Row) => boolean;
}

// Rows that are shown at first, and more at each demand.
const STEP = 100;

export function SortedTable<Row>({ caption, rows, columns, sortedBy, onSort, total = rows.length, keyOf, isLit }: SortedTableProps<Row>) {
  const [sorted, setSorted] = useState(sortedBy);
  const [limit, setLimit] = useState(STEP);
  const column = onSort ? columns[sortedBy] : columns[sorted] ?? columns[sortedBy];
  const ordered = useMemo(() => (
    onSort || !column ? rows : [...rows].sort((one, other) => compare(column.value(one), column.value(other)))
  ), [rows, column?.title]);
  const isNumber = (each: Column<Row>) => rows.length > 0 && typeof each.value(rows[0]!) === "number";
  return (
    <>
      <div class="scrolled">
        <table>
          <caption>{caption}<span class="count">{total === null ? "" : texts.number(total)}</span></caption>
          <thead><tr>
            {columns.map((each, at) => (
              <th key={each.title} scope="col" class={isNumber(each) ? "number" : ""}
                aria-sort={each !== column ? undefined : isNumber(each) ? "descending" : "ascending"}>
                <button type="button" class="plain" onClick={() => (onSort ?? setSorted)(at)}>{each.title}</button>
              </th>
            ))}
          </tr></thead>
          <tbody>
            {(onSort ? rows : ordered.slice(0, limit)).map((row) => (
              <tr key={keyOf(row)} class={isLit?.(row) ? "lit" : ""}>
                {columns.map((each, at) => (
                  <td key={each.title} dir="auto" class={isNumber(each) ? "number" : ""}>
                    {show(each, row)}{at === 0 && isLit?.(row) && <span class="unseen"> {texts.drawn.lit}</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!onSort && !rows.length && <p class="muted">{texts.none}</p>}
      {!onSort && <More left={rows.length - limit} onShow={() => setLimit(limit + STEP)} />}
    </>
  );
}

function show<Row>({ cell, value }: Column<Row>, row: Row): ComponentChildren {
  if (cell) return cell(row);
  const shown = value(row);
  return typeof shown === "number" ? texts.decimal(shown) : shown;
}

function compare(one: string | number, other: string | number): number {
  return typeof one === "number" && typeof other === "number" ? other - one : String(one).localeCompare(String(other));
}
