/** The things of the graph as a table, for readers who cannot use the drawing. */

import { useState } from "preact/hooks";
import { type Community, type Entity, filterQuery } from "../api";
import { PageEnd, usePages } from "../parts/PagedList";
import { useAddress } from "../parts/useAddress";
import { useData } from "../parts/useData";
import type { Highlight } from "../parts/useHighlight";
import { texts } from "../texts";

export function DrawnTable({ highlight }: { highlight: Highlight }) {
  const { summary } = useData();
  const hasCommunities = Boolean(summary.tables.communities);
  return (
    <div class="drawn panel-body">
      {hasCommunities && <CommunityTable />}
      <EntityTable highlight={highlight} />
    </div>
  );
}

function CommunityTable() {
  const { data } = useData();
  const { address, select } = useAddress();
  const filters = filterQuery(address.filters);
  const pages = usePages<Community>(
    (cursor, signal) => data.page(
      "communities", { ...filters, parent: address.only ?? -1, cursor, limit: 25 }, signal,
    ),
    [address.index, address.version, address.only, filters],
  );
  return (
    <>
      <table>
        <caption>{address.only === null ? texts.graph.communities : texts.evidence.children}</caption>
        <thead><tr>
          <th scope="col">{texts.columns.title}</th>
          <th scope="col" class="number">{texts.tables.entities}</th>
        </tr></thead>
        <tbody>
          {pages.rows.map(({ community, title, size }) => (
            <tr key={community}>
              <td dir="auto"><a href={select({ kind: "community", number: community })}>{title}</a></td>
              <td class="number">{texts.number(size)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <PageEnd pages={pages} empty={texts.none} />
    </>
  );
}

const SORTS = ["-degree", "title", "-frequency"] as const;

function EntityTable({ highlight }: { highlight: Highlight }) {
  const { data } = useData();
  const { address, select } = useAddress();
  const [sort, setSort] = useState<(typeof SORTS)[number]>("-degree");
  const filters = filterQuery(address.filters);
  const pages = usePages<Entity>(
    (cursor, signal) => data.page(
      "entities", { ...filters, community: address.only, sort, cursor, limit: 50 }, signal,
    ),
    [address.index, address.version, address.only, filters, sort],
  );
  const lit = new Set(highlight.entities);
  const heading = (column: string, wanted: (typeof SORTS)[number], isNumber = true) => (
    <th scope="col" class={isNumber ? "number" : ""}
      aria-sort={sort !== wanted ? undefined : isNumber ? "descending" : "ascending"}>
      <button type="button" class="plain" onClick={() => setSort(wanted)}>{column}</button>
    </th>
  );
  return (
    <>
      <table>
        <caption>{texts.tables.entities}</caption>
        <thead><tr>
          {heading(texts.columns.title!, "title", false)}
          <th scope="col">{texts.columns.type}</th>
          {heading(texts.columns.degree!, "-degree")}
          {heading(texts.columns.frequency!, "-frequency")}
        </tr></thead>
        <tbody>
          {pages.rows.map(({ number, title, type, degree, frequency }) => (
            <tr key={number} class={lit.has(number) ? "lit" : ""}>
              <td dir="auto"><a href={select({ kind: "entity", number })}>{title}</a></td>
              <td dir="auto">{type}</td>
              <td class="number">{texts.number(degree)}</td>
              <td class="number">{texts.number(frequency)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <PageEnd pages={pages} empty={texts.none} />
    </>
  );
}
