/** Sections of a panel, and their content: lists, whose rows may be loaded page by page, and pairs. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Page } from "../api";
import { texts } from "../texts";
import { Busy, Failure, useAbortedEffect, useRetryOnReturn } from "./useData";

/** Load the page at a cursor; the first page is at null. */
export type LoadPage<Row> = (cursor: string | null, signal: AbortSignal) => Promise<Page<Row>>;

export interface Paged<Row> {
  rows: Row[];
  total: number | null;
  error: Error | null;
  loading: boolean;
  /** Load the next page; undefined when all rows are here. */
  more: (() => void) | undefined;
  /** Load the page that failed again. */
  retry: () => void;
}

/** Load rows page by page; start again whenever `inputs` change. */
export function usePages<Row>(load: LoadPage<Row>, inputs: readonly unknown[]): Paged<Row> {
  const key = JSON.stringify(inputs);
  const [attempt, setAttempt] = useState(0);
  const [wanted, setWanted] = useState<{ key: string; cursor: string | null }>({ key, cursor: null });
  const [state, setState] = useState<{
    key: string; rows: Row[]; total: number | null; next: string | null; error: Error | null;
    loading: boolean;
  }>({ key, rows: [], total: null, next: null, error: null, loading: true });
  const cursor = wanted.key === key ? wanted.cursor : null;
  useAbortedEffect((signal) => {
    setState((before) => ({ ...before, loading: true, error: null }));
    load(cursor, signal).then(
      (page) => signal.aborted || setState((before) => ({
        key, total: page.total, next: page.next_cursor, error: null, loading: false,
        rows: cursor === null ? page.items : [...before.rows, ...page.items],
      })),
      (error: Error) => signal.aborted || setState((before) => ({ ...before, error, loading: false })),
    );
  }, [key, cursor, attempt]);
  const retry = () => setAttempt(attempt + 1);
  useRetryOnReturn(state.error, retry);
  const isCurrent = state.key === key;
  const { next } = state;
  return {
    // Rows of the last inputs stay until the new ones are here, so that lists do not flicker.
    rows: state.rows, total: state.total, error: state.error, loading: state.loading || !isCurrent,
    retry,
    more: isCurrent && next && !state.loading ? () => setWanted({ key, cursor: next }) : undefined,
  };
}

interface ListProps<Row> { rows: readonly Row[]; isBusy?: boolean; children: (row: Row) => ComponentChildren }

export function List<Row>({ rows, isBusy, children }: ListProps<Row>) {
  return <ul class="list" aria-busy={isBusy}>{rows.map((row, at) => <li key={at}>{children(row)}</li>)}</ul>;
}

interface PagedListProps<Row> { pages: Paged<Row>; empty: string; children: (row: Row) => ComponentChildren }

export function PagedList<Row>({ pages, empty, children }: PagedListProps<Row>) {
  const { rows, loading } = pages;
  return <><List rows={rows} isBusy={loading}>{children}</List><PageEnd pages={pages} empty={empty} /></>;
}

/** The end of a list: nothing found, still loading, or a button for more. */
export function PageEnd<Row>({ pages, empty }: { pages: Paged<Row>; empty: string }) {
  const { rows, loading, more, total, error, retry } = pages;
  if (error) return <Failure error={error} onRetry={retry} />;
  if (loading && !rows.length) return <Busy />;
  if (!rows.length) return <p class="muted">{empty}</p>;
  return more ? <More left={total === null ? null : total - rows.length || null} onShow={more} /> : null;
}

/** A button that shows more of a list; null: it is not known how many are left. */
export function More({ left, onShow }: { left: number | null; onShow: () => void }) {
  if (left !== null && left <= 0) return null;
  return <button type="button" class="more" onClick={onShow}>{texts.showMore(left)}</button>;
}

interface SectionProps { title: string; count?: number | null; children: ComponentChildren }

export function Section({ title, count = null, children }: SectionProps) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h3 id={id}>{title}{count !== null && <span class="count"> {texts.number(count)}</span>}</h3>
      {children}
    </section>
  );
}

/** Names with their values. */
export function Pairs({ pairs }: { pairs: readonly (readonly [string, string])[] }) {
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => <div key={name}><dt dir="auto">{name}</dt><dd dir="auto">{value}</dd></div>)}
    </dl>
  );
}

// Milliseconds without a key before a list is searched.
const PAUSE = 200;

interface SearchFieldProps { value: string; onChange: (text: string) => void; label?: string }

export function SearchField({ value, onChange, label = texts.browse.search }: SearchFieldProps) {
  const [text, setText] = useState(value);
  // What this field has told itself must not replace what has been typed since.
  const told = useRef(value);
  useEffect(() => {
    if (value !== told.current) setText(value);
    told.current = value;
  }, [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => { told.current = text; onChange(text); }, PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input type="search" value={text} placeholder={label} aria-label={label}
      onInput={(event) => setText(event.currentTarget.value)} />
  );
}
