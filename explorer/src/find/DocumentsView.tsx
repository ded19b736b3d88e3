/** The documents as a table, with the timeline of their dates and the files that were not read. */

import { useState } from "preact/hooks";
import { type Document, filterQuery } from "../api";
import { NotRead } from "../manage/DocumentsPanel";
import { PageEnd, SearchField, usePages } from "../parts/PagedList";
import { type Column, SortedTable } from "../parts/SortedTable";
import { useData, useLoaded } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import { FilterNotice } from "./FilterPanel";
import { Timeline } from "./Timeline";

/** The orders of the columns of the table as lists are asked for them. */
const SORTS = ["title", "type", "-date", "-n_text_units", "-n_entities"] as const;

export function DocumentsView() {
  const { data, manage, summary } = useData();
  const { address, select } = useAddress();
  const [search, setSearch] = useState("");
  const [sortedBy, setSorted] = useState(0);
  const filters = filterQuery(address.filters);
  const { index, selection, version } = address;
  const pages = usePages(
    (cursor, signal) => data.page("documents", { ...filters, q: search, sort: SORTS[sortedBy]!, cursor, limit: 100 }, signal),
    [search, sortedBy, filters, index, version, summary.version],
  );
  const files = useLoaded(async (signal) => await manage?.files(signal) ?? null, [index, summary.version]);
  const shown: Column<Document>[] = [
    {
      title: texts.columns.title!, value: ({ title }) => title,
      cell: ({ number, path, title, unread }) => (
        <>
          <a href={select({ kind: "document", number })}>{title}</a>
          {path !== title && <span class="row-text">{path}</span>}
          {unread && <span class="problem">{unread}</span>}
        </>
      ),
    },
    { title: texts.columns.type!, value: ({ type }) => type },
    { title: texts.columns.date!, value: ({ date }) => date, cell: ({ date }) => <span class="number">{date}</span> },
    {
      title: texts.tables.text_units, value: ({ n_text_units }) => n_text_units,
      cell: ({ n_text_units, n_pages = 0, n_recognized = 0 }) => (
        <>
          {texts.number(n_text_units)}
          {n_pages > 0 && <span class="row-text">{texts.pages(n_pages, n_recognized)}</span>}
        </>
      ),
    },
    { title: texts.tables.entities, value: ({ n_entities }) => n_entities },
  ];
  return (
    <div class="drawn panel-body">
      <Timeline />
      <SearchField value={search} onChange={setSearch} />
      <FilterNotice />
      <SortedTable caption={texts.tables.documents} total={pages.total} rows={pages.rows} columns={shown} sortedBy={sortedBy} onSort={setSorted}
        keyOf={({ number }) => number} isLit={({ number }) => selection?.kind === "document" && selection.number === number} />
      <PageEnd pages={pages} empty={texts.browse.nothing} />
      {files.value && <NotRead {...files.value} />}
    </div>
  );
}
