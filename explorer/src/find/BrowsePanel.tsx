/** Lists of the things of an index, searched and filtered. */

import { filterQuery, type Rows, type TableName, type TextUnit } from "../api";
import { useAsk } from "../ask/conversation";
import { CommunityLink, EntityLink, RelationshipLink, TextUnitLink } from "../parts/Link";
import { PagedList, SearchField, usePages } from "../parts/PagedList";
import { useData } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import { FilterNotice } from "./FilterPanel";

// The documents have a table of their own, in the middle of the page.
const TABLES: readonly TableName[] = ["entities", "relationships", "communities", "text_units"];

export function BrowsePanel() {
  const { summary } = useData();
  const { address, go, href } = useAddress();
  const table = TABLES.find((name) => name === address.table) ?? "entities";
  const shown = TABLES.filter((name) => summary.tables[name] !== undefined);
  return (
    <>
      <div class="panel-tools">
        <nav class="chips" aria-label={texts.browse.lists}>
          {shown.map((name) => (
            <a key={name} href={href({ table: name })} class="chip"
              aria-current={name === table ? "page" : undefined}>
              {texts.tables[name]}
            </a>
          ))}
        </nav>
        <SearchField value={address.search} onChange={(search) => go({ search }, true)} />
        <FilterNotice />
      </div>
      {/* The key: rows of one table must not be drawn as rows of another while these load. */}
      <div class="panel-body"><RowList key={table} table={table} search={address.search} /></div>
    </>
  );
}

function RowList<T extends TableName>({ table, search }: { table: T; search: string }) {
  const { data, summary } = useData();
  const { address } = useAddress();
  const ask = useAsk();
  const filters = filterQuery(address.filters);
  const pages = usePages<Rows[T]>(
    (cursor, signal) => data.page(table, { ...filters, q: search, cursor, limit: 50 }, signal),
    [table, search, filters, address.index, address.version],
  );
  return (
    <>
      <p class="muted" role="status">{pages.total === null ? "" : texts.rows(pages.total)}</p>
      <PagedList pages={pages} empty={texts.browse.nothing}>
        {(row) => <Row table={table} row={row} />}
      </PagedList>
      {pages.total === 0 && search && data.ask && summary.scopes.includes("ask") && (
        <button type="button" class="plain" onClick={() => ask(search)}>{texts.browse.ask}</button>
      )}
    </>
  );
}

function Row({ table, row }: { table: TableName; row: Rows[TableName] }) {
  switch (table) {
    case "entities": return <EntityLink entity={row as Rows["entities"]} />;
    case "relationships": return <RelationshipLink relationship={row as Rows["relationships"]} />;
    case "text_units": return <TextUnitLink unit={row as TextUnit} />;
    default: return <CommunityLink community={row as Rows["communities"]} />;
  }
}
