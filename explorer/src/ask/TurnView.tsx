/** One question with its answer: text, citations, what was looked at, cost and time. */

import type { ComponentChildren } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import type { Answer } from "../api";
import { type DrawCitation, FormattedText } from "../parts/FormattedText";
import { EntityChip } from "../parts/Link";
import { useData } from "../parts/useData";
import { useLoaded } from "../parts/useLoaded";
import { type Address, AddressContext, type AddressStore, useAddress, useKeeping } from "../state";
import { texts } from "../texts";
import { CitationList, CitationMark, isOnlyHere, OtherAnswers } from "./Citations";
import { CountBars } from "./CountBars";
import { type Evidence, loadEvidence } from "./citedRows";
import { JudgeAnswer } from "./JudgeAnswer";
import type { Turn } from "./kept";
import { LookedAt } from "./LookedAt";
import type { Ask } from "./useAsk";

interface TurnProps { turn: Turn; ask: Ask; isLast: boolean }

export function TurnView({ turn, ask, isLast }: TurnProps) {
  const { question, state, status, text, answer, error } = turn;
  return (
    <article class="turn" aria-label={question}>
      <h2 class="asked" dir="auto">{question}</h2>
      {state === "asking" && !text && (
        <p class="busy" role="status"><span class="spinner" aria-hidden="true" />{status || texts.ask.searching}</p>
      )}
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
  const nOnly = citations.filter((citation) => isOnlyHere(citation, answer, others)).length;
  return (
    <p class="cost">
      {texts.ask.effort(answer).map((part) => <span key={part}>{part}</span>)}
      {others && <span>{texts.beside.evidence(citations.length, nOnly, others.length > 0)}</span>}
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
