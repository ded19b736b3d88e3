/** The console: queries in SQL and Cypher, the tables that they can name, and their rows. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { QUERY_LANGUAGES, type QueryResult, type QuerySchema } from "../api";
import { save, writeTable } from "../graph/exportView";
import { SortedTable } from "../parts/SortedTable";
import { Switch } from "../parts/Switch";
import { Await, Busy, Failure, useAction, useData, useLoaded } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";

export function Console() {
  const { data } = useData();
  const { address, go } = useAddress();
  const language = QUERY_LANGUAGES.find((name) => name === address.language) ?? "sql";
  const [text, setText] = useState(address.query);
  const [result, setResult] = useState<QueryResult | null>(null);
  const { act, isBusy, error } = useAction();
  const running = useRef(new AbortController());
  const field = useRef<HTMLTextAreaElement>(null);
  const schema = useLoaded((signal) => data.querySchema!(signal), [address.index, address.version]);
  useEffect(() => setText(address.query), [address.query]);
  useEffect(() => () => running.current.abort(), []);
  const run = (event: Event) => {
    event.preventDefault();
    if (text.trim() && !isBusy) void act(async () => {
      const { signal } = running.current = new AbortController();
      go({ query: text, language }, true);
      setResult(null);
      try {
        setResult(await data.query!(language, text, signal));
      } catch (failure) {
        if (!signal.aborted) throw failure;
      }
    });
  };
  const insert = (name: string) => {
    const area = field.current!;
    area.setRangeText(name, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    setText(area.value);
  };
  return (
    <div class="console drawn panel-body">
      <form onSubmit={run}>
        <Switch label={texts.console.language} names={QUERY_LANGUAGES} titles={texts.console.languages} value={language}
          onChoose={(name) => go({ language: name, query: text }, true)} />
        {texts.console.examples[language].map(([name, query]) => (
          <button key={name} type="button" class="chip" onClick={() => setText(query)}>{name}</button>
        ))}
        <textarea ref={field} rows={5} spellcheck={false} value={text} aria-label={texts.console.query} placeholder={texts.console.placeholder}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event); }} />
        <button type="submit" class="primary" disabled={isBusy}>{texts.console.run}</button>
        {isBusy && <button type="button" onClick={() => running.current.abort()}>{texts.console.stop}</button>}
        {result && (
          <button type="button" onClick={() => save(writeTable(result.columns, result.rows), "text/csv", "result.csv")}>{texts.console.save}</button>
        )}
        {isBusy && <Busy label={texts.console.running} />}
        {error !== null && !isBusy && <Failure error={error} />}
      </form>
      <aside aria-label={texts.console.tables}>
        <Await loaded={schema}>{(found) => <Tables {...found[language]} onChoose={insert} />}</Await>
      </aside>
      {result && <Rows {...result} />}
    </div>
  );
}

function Tables({ problem, tables, onChoose }: QuerySchema["sql"] & { onChoose: (name: string) => void }) {
  return (
    <>
      {problem && <p class="problem">{problem}</p>}
      {tables.map(({ name, meaning, rows, columns }) => (
        <details key={name}>
          <summary>{name}{rows !== null && <span class="count">{texts.number(rows)}</span>}</summary>
          <p class="muted">{meaning}</p>
          {Object.entries({ [name]: meaning, ...columns }).map(([column, type]) => (
            <button key={column} type="button" class="chip" title={type} onClick={() => onChoose(column)}>{column}</button>
          ))}
        </details>
      ))}
    </>
  );
}

function Rows({ columns, engine, is_cut, links, rows, seconds }: QueryResult) {
  const { select } = useAddress();
  const lines = useMemo(() => rows.map((values, at) => ({ at, values })), [rows]);
  const shown = columns.map((title, column) => {
    const isNumber = rows.some((row) => typeof row[column] === "number");
    const { kind, numbers } = links.find((one) => one.column === column) ?? {};
    return {
      title,
      value: ({ values }: (typeof lines)[number]) => (isNumber ? Number(values[column] ?? -Infinity) : formatValue(values[column])),
      cell: ({ at, values }: (typeof lines)[number]) => {
        const number = numbers?.[at] ?? null;
        const text = formatValue(values[column]);
        return kind && number !== null ? <a href={select({ kind, number })}>{text}</a> : text;
      },
    };
  });
  return (
    <div class="result">
      <p class="muted" role="status">{texts.console.found(rows.length, is_cut, seconds, engine)}</p>
      <SortedTable caption={texts.console.result} rows={lines} columns={shown} sortedBy={-1} keyOf={({ at }) => at} />
    </div>
  );
}

/** Write a value as text: a node of the graph by its title. */
function formatValue(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value ?? "");
  return "title" in value && typeof value.title === "string" ? value.title : JSON.stringify(value);
}
