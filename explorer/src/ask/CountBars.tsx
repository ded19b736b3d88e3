/** The rows of a counting answer as a table with bars. */

import type { Answer } from "../api";
import type { DrawCitation } from "../parts/FormattedText";
import { texts } from "../texts";

interface CountBarsProps { answer: Answer; citation: DrawCitation }

export function CountBars({ answer, citation }: CountBarsProps) {
  const rows = answer.table;
  const citations = citationsOfRows(answer);
  const columns = Object.keys(rows[0] ?? {});
  const counted = columns.find((column) => typeof rows[0]?.[column] === "number");
  const most = Math.max(1, ...rows.map((row) => Number(row[counted ?? ""]) || 0));
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={texts.ask.counts}>
      <table class="counts">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={column === counted ? "number" : ""}>
                {texts.columns[column] ?? column.replaceAll("_", " ")}
              </th>
            ))}
            {counted && <td aria-hidden="true" class="bar-cell" />}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {columns.map((column) => (
                <td key={column} class={typeof row[column] === "number" ? "number" : ""} dir="auto">
                  {formatCell(row[column])}
                  {citations.get(String(row[column]))?.map((number) => <> {citation(number)}</>)}
                </td>
              ))}
              {counted && (
                <td aria-hidden="true" class="bar-cell">
                  <div class="bar" style={{ width: `${(100 * Number(row[counted])) / most}%` }} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function formatCell(value: unknown): string {
  if (typeof value === "number") return texts.number(value);
  return value === null || value === undefined ? "" : String(value);
}

/** Return the numbers that the text of the answer cites beside a name: `| Oslo [3] | 12 |`. */
function citationsOfRows({ answer }: Answer): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const [, name = "", numbers = ""] of answer.matchAll(/^\| *(.+?) ((?:\[\d+\] ?)+)\|/gm)) {
    found.set(name, (numbers.match(/\d+/g) ?? []).map(Number));
  }
  return found;
}
