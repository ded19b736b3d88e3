/** The versions of the index; each can be looked at as it was. */

import { useState } from "preact/hooks";
import { CHANGED_TABLES, type ChangedRow, type ChangedTable } from "../api";
import { Line } from "../parts/Link";
import { PagedList, usePages } from "../parts/PagedList";
import { type Comparison as Compared, useComparison } from "../parts/useComparison";
import { Await, useData, useLoaded } from "../parts/useData";
import { type Kind, useAddress } from "../state";
import { texts } from "../texts";

export function VersionsPanel() {
  const { data, summary } = useData();
  const { address, href } = useAddress();
  const loaded = useLoaded((signal) => data.versions(signal), [summary.name, summary.version]);
  const comparison = useComparison();
  const shown = address.version ?? summary.version;
  return (
    <div class="panel-body">
      <p class="muted">{texts.versions.explained}</p>
      {comparison && <Comparison {...comparison} />}
      <Await loaded={loaded}>
        {(versions) => (
          <ul class="list">
            {versions.map(({ number, date, is_current, workflow }) => {
              const isShown = number === shown;
              return (
                <li key={number} class="version">
                  <a class="row" aria-current={isShown ? "true" : undefined} href={href({ version: is_current ? null : number })}>
                    <span class="row-name">
                      {texts.version(number)}{" "}
                      {is_current && <span class="tag">{texts.versions.current}</span>}
                    </span>
                    <span class="row-note">{[workflow, date.slice(0, 16).replace("T", " ")].filter(Boolean).join(" · ")}</span>
                  </a>
                  {!isShown && data.changedRows && (
                    <a class="button" href={href({ compare: number, selection: null })} aria-label={texts.versions.compareWith(number)}
                      aria-current={number === address.compare ? "true" : undefined}>
                      {texts.versions.compare}
                    </a>
                  )}
                </li>
              );
            })}
          </ul>
        )}
      </Await>
    </div>
  );
}

function Comparison({ from, to }: Compared) {
  const { href } = useAddress();
  return (
    <section class="comparison" aria-label={texts.versions.compared(from, to)}>
      <h2>{texts.versions.compared(from, to)}</h2>
      <p><a href={href({ compare: null })}>{texts.versions.stop}</a></p>
      {CHANGED_TABLES.map((table) => <ChangedTableView key={table} table={table} from={from} to={to} />)}
    </section>
  );
}

function ChangedTableView({ table, from, to }: Compared & { table: ChangedTable }) {
  const { data } = useData();
  const counts = useLoaded(async (signal) => (
    (await data.changedRows!(table, { from, to, limit: 1 }, signal)).counts
  ), [table, from, to]);
  return (
    <>
      <h3>{texts.tables[table]}</h3>
      <Await loaded={counts}>
        {(found) => {
          const kinds = (["added", "removed", "changed", "renamed"] as const).filter((kind) => found[kind]);
          return kinds.length ? (
            <>{kinds.map((kind) => (
              <ChangedRowsView key={kind} table={table} kind={kind} count={found[kind]!} from={from} to={to} />
            ))}</>
          ) : <p class="muted">{texts.versions.unchanged}</p>;
        }}
      </Await>
    </>
  );
}

interface ChangedRowsProps extends Compared { table: ChangedTable; kind: ChangedRow["kind"]; count: number }

// Rows of one kind of change that are shown at once.
const MAX_OPEN = 5;

/** The rows of one kind of change. More than a few are loaded when they are opened. */
function ChangedRowsView(props: ChangedRowsProps) {
  const { kind, count } = props;
  const [isOpen, setOpen] = useState(count <= MAX_OPEN);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class={`change-${kind}`}>{texts.number(count)} {texts.versions.kinds[kind]}</summary>
      {isOpen && <ChangedRowList {...props} />}
    </details>
  );
}

const KINDS: Record<ChangedTable, Kind> = {
  documents: "document", entities: "entity", relationships: "relationship", communities: "community", reports: "community",
};

function ChangedRowList({ table, kind, from, to }: ChangedRowsProps) {
  const { data, summary } = useData();
  const { href } = useAddress();
  const pages = usePages<ChangedRow>(
    (cursor, signal) => data.changedRows!(table, { from, to, kind, cursor }, signal), [table, kind, from, to],
  );
  const link = (name: string, number: number | null, version: number, text: string) => number !== null && (
    <a aria-label={texts.versions.inVersion(name, version)} href={href({
      // The comparison stays, seen from the version that has the row.
      version: version === summary.version ? null : version, compare: version === from ? to : from,
      selection: { kind: KINDS[table], number }, path: null, only: null,
    })}>{text}</a>
  );
  return (
    <PagedList pages={pages} empty={texts.none}>
      {({ name, before, after }) => (
        <Line name={name} note={<>{link(name, before, from, texts.versions.before)} {link(name, after, to, texts.versions.after)}</>} />
      )}
    </PagedList>
  );
}
