/** One question with its answer: text, counts, citations, what was looked at, cost, time, and the judgement. */

import type { ComponentChildren } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import type { Answer } from "../api";
import { type DrawCitation, FormattedText } from "../parts/FormattedText";
import { EntityChip } from "../parts/Link";
import { Busy, Failure, useAction, useData, useLoaded } from "../parts/useData";
import { type Address, AddressContext, type AddressStore, useAddress, useKeeping } from "../state";
import { texts } from "../texts";
import { CitationList, CitationMark, isOnlyHere, OtherAnswers } from "./Citations";
import { type Evidence, loadEvidence } from "./citedRows";
import { type Ask, ConversationContext } from "./conversation";
import type { Turn } from "./kept";
import { LookedAt } from "./LookedAt";

interface TurnProps { turn: Turn; ask: Ask; isLast: boolean }

export function TurnView({ turn, ask, isLast }: TurnProps) {
  const { question, state, status, text, answer, error } = turn;
  return (
    <article class="turn" aria-label={question}>
      <h2 class="asked" dir="auto">{question}</h2>
      {state === "asking" && !text && <Busy label={status || texts.ask.searching} />}
      {answer
        ? (
          <AtVersion version={answer.version}>
            <AnswerView answer={answer} ask={ask} isLast={isLast} asked={question} />
            <JudgeAnswer turn={turn} />
          </AtVersion>
        )
        : text && <FormattedText text={text} />}
      {state === "cancelled" && <p class="muted">{texts.ask.cancelled}</p>}
      {state === "failed" && (
        <div class="failure" role="alert">
          <p>{error}</p>
          <button type="button" onClick={() => ask(question, turn.method)}>{texts.ask.again}</button>
        </div>
      )}
      {isLast && <span class="unseen" role="status">{answer ? texts.ask.ready : ""}</span>}
    </article>
  );
}

/** Make the links inside open a version of the index, whichever version the page shows. */
function AtVersion({ version, children }: { version: number; children: ComponentChildren }) {
  const store = useAddress();
  const { summary } = useData();
  const shown = store.address.version ?? summary.version;
  const linking = useMemo<AddressStore>(() => {
    if (version === shown || !version) return store;
    const change = { version: version === summary.version ? null : version };
    const href = (wanted: Partial<Address>) => store.href({ ...change, ...wanted });
    return { ...store, href, select: (selection) => href({ selection }) };
  }, [store, version, shown]);
  return <AddressContext.Provider value={linking}>{children}</AddressContext.Provider>;
}

interface AnswerProps { answer: Answer; ask: Ask; isLast: boolean; asked: string }

function AnswerView({ answer, ask, isLast, asked }: AnswerProps) {
  const { data, summary } = useData();
  const { address } = useAddress();
  const shown = address.version ?? summary.version;
  const { outcome, question, citations, follow_ups, table } = answer;
  // The numbers of another version would light other things.
  const isShown = answer.version === shown;
  const evidence = useLoaded(async () => (isShown ? loadEvidence(answer, data) : null), [isShown]).value;
  // The graph shows the evidence of the newest answer for as long as the reader is at the conversation.
  useKeeping(isLast && evidence ? evidence.highlight : null);
  const byNumber = useMemo(() => new Map(citations.map((citation) => [citation.number, citation])), [citations]);
  const citation: DrawCitation = (number) => {
    const found = byNumber.get(number);
    return found ? <CitationMark citation={found} answer={answer} /> : `[${number}]`;
  };
  return (
    <div class={`answer ${outcome}`}>
      {question !== asked && <p class="muted" dir="auto">{texts.ask.understoodAs} {question}</p>}
      {outcome !== "answered" && <p class="outcome">{texts.ask.outcomes[outcome]}</p>}
      <AnswerText answer={answer} citation={citation} />
      {table.length > 0 && <CountBars answer={answer} citation={citation} />}
      <Suggested answer={answer} ask={ask} />
      {citations.length > 0 && <CitationList answer={answer} />}
      {isLast && follow_ups.length > 0 && (
        <ul class="suggestions" aria-label={texts.ask.followUps}>
          {follow_ups.map((next) => <li key={next}><button type="button" onClick={() => ask(next)}>{next}</button></li>)}
        </ul>
      )}
      <NamedEntities entities={evidence?.entities ?? []} />
      <LookedAt answer={answer} ask={ask} />
      <Cost answer={answer} />
    </div>
  );
}

interface AnswerTextProps { answer: Answer; citation: DrawCitation }

function AnswerText({ answer, citation }: AnswerTextProps) {
  // The rows of a count are drawn as bars below, so their table is left out of the text.
  const text = answer.table.length
    ? answer.answer.split("\n").filter((line) => !line.startsWith("|")).join("\n")
    : answer.answer;
  return <FormattedText text={text} citation={citation} />;
}

// Entities that are offered below an answer.
const MAX_ENTITIES = 6;

/** The main entities that the quotations of an answer name, to read on. */
function NamedEntities({ entities }: Pick<Evidence, "entities">) {
  if (!entities.length) return null;
  return (
    <ul class="chips named-entities" aria-label={texts.tables.entities}>
      {entities.slice(0, MAX_ENTITIES).map(({ number, title }) => (
        <li key={number}><EntityChip number={number} title={title} /></li>
      ))}
    </ul>
  );
}

/** Another search that finds something, as a button. */
function Suggested({ answer, ask }: { answer: Answer; ask: Ask }) {
  const { suggestion } = answer;
  const [question, ...names] = suggestion?.arguments ?? [];
  if (!suggestion || !question) return null;
  const name = texts.methods[suggestion.method]?.[0] ?? suggestion.method;
  return (
    <div class="suggestion">
      <p>{suggestion.why}</p>
      <button type="button" class="primary" onClick={() => ask(question, suggestion.method, names.length ? names : undefined)}>
        {texts.ask.tryMethod(name, [question, ...names].join(", "))}
      </button>
    </div>
  );
}

function Cost({ answer }: { answer: Answer }) {
  const { href } = useAddress();
  const { citations, version } = answer;
  const others = useContext(OtherAnswers);
  // Two sentences of one passage are one passage.
  const passages = [...new Map(citations.map((citation) => [citation.text_unit, citation])).values()];
  const nOnly = passages.filter((citation) => isOnlyHere(citation, answer, others)).length;
  return (
    <p class="cost">
      {texts.ask.effort(answer).map((part) => <span key={part}>{part}</span>)}
      {others && <span>{others.length ? texts.beside.evidence(passages.length - nOnly, nOnly) : texts.ask.sources(citations.length)}</span>}
      <a href={href({ version })} title={texts.ask.pin}>{texts.version(version)}</a>
      <CopyButton answer={answer} />
    </p>
  );
}

/** A button that copies the answer, followed by the passages that it cites. */
function CopyButton({ answer }: { answer: Answer }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    const sources = answer.citations.map(({ number, document, quote }) => `[${number}] ${document}: “${quote}”`);
    await navigator.clipboard.writeText([answer.answer, ...sources].join("\n\n"));
    setCopied(true);
  };
  // A browser offers the clipboard only to pages of this computer and over HTTPS.
  if (!navigator.clipboard) return null;
  return (
    <>
      <button type="button" class="plain" onClick={() => void copy()}>{texts.ask.copy}</button>
      <span role="status">{isCopied ? texts.ask.copied : ""}</span>
    </>
  );
}

interface CountBarsProps { answer: Answer; citation: DrawCitation }

function CountBars({ answer, citation }: CountBarsProps) {
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

const THUMB = "M2 9h3v9H2zM7 18V9l4-7c1.5 0 2.2 1 2 2.5L12.4 8H17c1 0 1.7.9 1.4 1.9l-2 7c-.2.7-.7 1.1-1.4 1.1z";
const show = (field: HTMLElement | null) => { field?.focus(); field?.scrollIntoView({ block: "center" }); };

/** Readers whose key may not write see nothing, and so do those of a search that failed. */
function JudgeAnswer({ turn }: { turn: Turn }) {
  const { manage, summary } = useData();
  const conversation = useContext(ConversationContext);
  const { act, isBusy, error } = useAction();
  const [chosen, choose] = useState<"up" | "down" | null>(null);
  const [reason, setReason] = useState("");
  const { answer, filters, verdict: kept } = turn;
  if (!answer || !manage || !summary.scopes.includes("index") || !["answered", "no_evidence"].includes(answer.outcome)) return null;
  const send = (verdict: "up" | "down" | "withdrawn") => act(async () => {
    const { question, method, parameters, version, outcome, answer: text, citations } = answer;
    const judged = { question, method, parameters, version, outcome, answer: text, citations };
    await manage.judge({ ...judged, verdict, reason, filters: filters ? JSON.parse(filters) : {} });
    conversation.settle(turn.id, { verdict: verdict === "withdrawn" ? "" : verdict });
    choose(null);
    setReason("");
  });
  return (
    <div class="judge" role="group" aria-label={texts.judge.label}>
      {(["up", "down"] as const).map((verdict) => (
        <button key={verdict} type="button" class={`icon ${verdict}`} aria-pressed={(chosen ?? kept) === verdict}
          disabled={isBusy} aria-label={texts.judge[verdict]} title={texts.judge[verdict]}
          onClick={() => (kept === verdict ? void send("withdrawn") : choose(chosen === verdict ? null : verdict))}>
          <svg viewBox="0 0 20 20" width="18" aria-hidden="true"><path d={THUMB} /></svg>
        </button>
      ))}
      <span role="status" class="muted">{kept && !chosen && texts.judge.kept}</span>
      {chosen && (
        <form onSubmit={(event) => { event.preventDefault(); void send(chosen); }}>
          <input value={reason} maxLength={5000} dir="auto" ref={show} aria-label={texts.judge.reason} placeholder={texts.judge.reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)} />
          <button type="submit" disabled={isBusy}>{texts.judge.keep}</button>
        </form>
      )}
      {error !== null && <Failure error={error} />}
    </div>
  );
}
