/** One question to two to four searches, settings or versions side by side, with cost, time and evidence. */

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import type { Version } from "../api";
import { useObserved } from "../parts/Observed";
import { useData, useLoaded } from "../parts/useData";
import { attempt } from "../session";
import { useAddress } from "../state";
import { texts } from "../texts";
import { SearchSelect } from "./AskPanel";
import { OtherAnswers } from "./Citations";
import { Conversation, ConversationContext, useAsk } from "./conversation";
import { TurnView } from "./TurnView";

const MAX_COLUMNS = 4;

/** A column as the address has it: a search, a version and settings, such as `local@3?top_k_text_units=5`. */
interface ColumnChoice { method: string; version: number | null; settings: string }

function parseColumn(text: string): ColumnChoice {
  const [, method = "ask", version, settings = ""] = /^(\w*)(?:@(\d+))?(?:\?(.*))?/s.exec(text) ?? [];
  return { method: method || "ask", version: version ? Number(version) : null, settings };
}

const formatColumn = ({ method, version, settings }: ColumnChoice) =>
  `${method}${version === null ? "" : `@${version}`}${settings && `?${settings}`}`;

/** Parse settings such as `top_k_text_units=5, mode=text`. */
const parseSettings = (text: string) => Object.fromEntries([...text.matchAll(/([\w.]+)\s*=\s*([^,]*)/g)].map(
  ([, name, value = ""]) => [name, attempt(() => JSON.parse(value) as unknown) ?? value.trim()]));

export function SideBySide() {
  const { address, go, href } = useAddress();
  const { data } = useData();
  const ask = useAsk();
  const { columns } = useContext(ConversationContext);
  const [text, setText] = useState(address.question);
  const versions = useLoaded((signal) => data.versions(signal), []).value ?? [];
  const chosen = address.beside.slice(0, MAX_COLUMNS);
  const shown = useMemo(() => chosen.map((choice, at) => {
    const key = `${choice} ${chosen.slice(0, at).filter((other) => other === choice).length}`;
    if (!columns.has(key)) columns.set(key, new Conversation());
    return columns.get(key)!;
  }), [columns, JSON.stringify(chosen)]);
  useObserved(shown);
  useEffect(() => setText(address.question), [address.question]);
  const isAsking = shown.some((column) => column.isAsking);
  const change = (at: number, choices: string[]) => go({ beside: [...chosen.slice(0, at), ...choices, ...chosen.slice(at + 1)] }, true);
  const submit = (event: Event) => {
    event.preventDefault();
    const question = text.trim();
    go({ question }, true);
    // An answer that is here already is not paid for again, unless all are.
    const left = shown.filter(({ turns: [turn] }) => turn?.question !== question || turn.state !== "answered");
    for (const column of left.length ? left : shown) {
      const { method, version, settings } = parseColumn(chosen[shown.indexOf(column)]!);
      column.clear();
      void column.ask(data, { question, method, version, filters: address.filters, settings: parseSettings(settings) });
    }
  };
  return (
    <section class="graph-pane beside" aria-label={texts.beside.title}>
      <form class="tools" onSubmit={submit}>
        <input value={text} maxLength={20000} dir="auto" aria-label={texts.beside.question} placeholder={texts.ask.placeholder}
          onInput={({ currentTarget }) => setText(currentTarget.value)} />
        {isAsking
          ? <button type="button" onClick={() => shown.forEach((column) => column.cancel())}>{texts.ask.cancel}</button>
          : <button type="submit" class="primary" disabled={!text.trim()}>{texts.beside.ask}</button>}
        {chosen.length < MAX_COLUMNS && (
          <button type="button" onClick={() => change(chosen.length, ["ask"])}>{texts.beside.add}</button>
        )}
        <a class="button" href={href({ beside: [] })}>{texts.beside.close}</a>
      </form>
      <div class="columns">
        {shown.map((column, at) => (
          <section key={at} aria-label={texts.beside.column(at + 1)}>
            <ColumnTools text={chosen[at]!} versions={versions} isNeeded={chosen.length <= 2}
              onChange={(choices) => change(at, choices)} />
            <ConversationContext.Provider value={column}>
              <OtherAnswers.Provider value={shown.flatMap(({ turns: [turn] }, other) => (other !== at && turn?.answer) || [])}>
                {column.turns.map((turn) => <TurnView key={turn.id} turn={turn} ask={ask} isLast={false} />)}
              </OtherAnswers.Provider>
            </ConversationContext.Provider>
          </section>
        ))}
      </div>
    </section>
  );
}

interface ColumnToolsProps {
  text: string;
  versions: readonly Version[];
  isNeeded: boolean;
  /** Replace the column by others: none removes it. */
  onChange: (choices: string[]) => void;
}

function ColumnTools({ text, versions, isNeeded, onChange }: ColumnToolsProps) {
  const choice = parseColumn(text);
  const change = (changed: Partial<ColumnChoice>) => onChange([formatColumn({ ...choice, ...changed })]);
  return (
    <div class="column-tools">
      <SearchSelect value={choice.method} onChange={(method) => change({ method })} />
      <select aria-label={texts.beside.version} value={choice.version ?? ""}
        onChange={({ currentTarget: { value } }) => change({ version: value ? Number(value) : null })}>
        <option value="">{texts.beside.current}</option>
        {versions.map(({ number }) => <option key={number} value={number}>{texts.version(number)}</option>)}
      </select>
      {!isNeeded && (
        <button type="button" class="icon" aria-label={texts.beside.remove} title={texts.beside.remove} onClick={() => onChange([])}>×</button>
      )}
      <input value={choice.settings} dir="auto" aria-label={texts.beside.settings} title={texts.beside.settings} placeholder={texts.beside.settingsForm}
        onChange={({ currentTarget }) => change({ settings: currentTarget.value.trim() })} />
    </div>
  );
}
