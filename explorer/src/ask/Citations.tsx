/** Numbered citations: in the text of an answer, and as a list of passages below it. */

import { createContext } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import type { Answer, Citation } from "../api";
import { useData, useLoaded } from "../parts/useData";
import { useAddress, usePointing } from "../state";
import { texts } from "../texts";
import { citedRow, highlightOfCitation } from "./citedRows";

/** The answers that stand beside an answer; null for one that stands alone. */
export const OtherAnswers = createContext<readonly Answer[] | null>(null);

/** Return whether a passage is cited by none of the answers beside this one; false without others. */
export function isOnlyHere(citation: Citation, { version }: Answer, others: readonly Answer[] | null): boolean {
  // Passages have other numbers in another version.
  const isSame = (other: Citation, at: Answer) => (at.version === version && other.text_unit === citation.text_unit) ||
    (other.document_id === citation.document_id && other.start_char < citation.end_char && citation.start_char < other.end_char);
  return Boolean(others?.length) && !others!.some((answer) => answer.citations.some((other) => isSame(other, answer)));
}

interface CitationProps { citation: Citation; answer: Answer }

export function CitationMark({ citation, answer }: CitationProps) {
  const link = useCitation({ citation, answer });
  const isOnly = isOnlyHere(citation, answer, useContext(OtherAnswers));
  return (
    <a class={isOnly ? "citation only" : "citation"} {...link} data-citation={citation.number}
      aria-label={texts.ask.citation(citation.number, citation.document)}
      title={`${citation.document}: “${citation.quote}”`}>
      {citation.number}
    </a>
  );
}

/** Return properties of a link that opens a passage, and lights it while it is pointed at. */
function useCitation({ citation, answer }: CitationProps) {
  const { address, select } = useAddress();
  const { data, summary } = useData();
  const point = usePointing();
  const shown = address.version ?? summary.version;
  const controller = useRef<AbortController | null>(null);
  const light = (event: Event) => {
    lightCitation(event.currentTarget, citation.number, true);
    controller.current?.abort();
    // The numbers of another version would light other things.
    if (answer.version !== shown) return;
    controller.current = new AbortController();
    const { signal } = controller.current;
    highlightOfCitation(citation, answer, data, signal).then(
      (highlight) => signal.aborted || point(highlight),
      // The passage still opens if what it names cannot be loaded.
      () => {},
    );
  };
  const stop = (event: Event) => {
    lightCitation(event.currentTarget, citation.number, false);
    controller.current?.abort();
    point(null);
  };
  const { text_unit, start_char: start, end_char: end } = citation;
  return {
    href: select({ kind: "text_unit", number: text_unit, span: { start, end } }),
    onPointerEnter: light, onPointerLeave: stop, onFocus: light, onBlur: stop,
  };
}

/** Mark all places of one citation in an answer: its marks in the text, and its passage. */
function lightCitation(target: EventTarget | null, number: number, isLit: boolean): void {
  const answer = target instanceof Element ? target.closest(".answer") : null;
  for (const place of answer?.querySelectorAll(`[data-citation="${number}"]`) ?? []) {
    place.classList.toggle("lit", isLit);
  }
}

export function CitationList({ answer }: { answer: Answer }) {
  const [isOpen, setOpen] = useState(answer.citations.length <= 4);
  return (
    <details class="sources" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{texts.ask.sources(answer.citations.length)}</summary>
      <ol>
        {isOpen && answer.citations.map((citation) => (
          <li key={citation.number} value={citation.number}><CitedPassage citation={citation} answer={answer} /></li>
        ))}
      </ol>
    </details>
  );
}

// Characters that are shown before and after a quotation, and at its two ends if it is longer.
const MAX_AROUND = 110;
const MAX_END = 45;

/** What stands around a quotation; the answer has told most of the quotation itself already. */
function QuoteInContext({ citation, version }: { citation: Citation; version: number }) {
  const { address } = useAddress();
  const { data, summary } = useData();
  const { quote, text_unit, start_char, end_char } = citation;
  const isShown = version === (address.version ?? summary.version);
  const unit = useLoaded(
    async (signal) => (isShown ? data.row("text_units", text_unit, signal) : null), [isShown, text_unit],
  ).value;
  if (!unit) return <q dir="auto">{quote}</q>;
  // Offsets count code points.
  const points = Array.from(unit.text);
  const cut = (start: number, end: number) => points.slice(Math.max(0, start), Math.max(0, end)).join("").replace(/\s+/g, " ");
  const [start, end] = [start_char - unit.start_char, end_char - unit.start_char];
  const before = cut(start - MAX_AROUND, start), after = cut(end, end + MAX_AROUND);
  return (
    <span class="around-quote" dir="auto">
      {start > MAX_AROUND ? `…${before.replace(/^\S*\s/, "")}` : before}
      <q>{end - start > 2 * MAX_END ? <>
        {cut(start, start + MAX_END).replace(/\s\S*$/, "")} … {cut(end - MAX_END, end).replace(/^\S*\s/, "")}
      </> : cut(start, end)}</q>
      {end + MAX_AROUND < points.length ? `${after.replace(/\s\S*$/, "")} …` : after}
    </span>
  );
}

function CitedPassage({ citation, answer }: CitationProps) {
  const link = useCitation({ citation, answer });
  const { select } = useAddress();
  const { section, number } = citedRow(citation);
  const isOnly = isOnlyHere(citation, answer, useContext(OtherAnswers));
  return (
    <div class="cited" data-citation={citation.number}>
      <a class="passage" {...link}>
        <span class="citation-number" aria-hidden="true">{citation.number}</span>
        <span class="row-name">
          <QuoteInContext citation={citation} version={answer.version} />
          <span class="row-note" dir="auto">{citation.document}{isOnly && <span class="tag only">{texts.beside.onlyHere}</span>}</span>
        </span>
      </a>
      {section === "Reports" && (
        <a class="via" href={select({ kind: "community", number })}>{texts.ask.viaReport(number)}</a>
      )}
      {section === "Relationships" && (
        <a class="via" href={select({ kind: "relationship", number })}>{texts.ask.viaRelationship}</a>
      )}
    </div>
  );
}
