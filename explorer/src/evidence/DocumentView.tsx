/** A document with a marked span. More of its text is loaded as the reader scrolls. */

import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Citation, Document, DocumentText, PageSpan, TextUnitDetails } from "../api";
import { ConversationContext } from "../ask/conversation";
import { EntityChip, useLink } from "../parts/Link";
import { Pairs, Section } from "../parts/PagedList";
import { Busy, Failure, useData, useLoaded } from "../parts/useData";
import { attempt } from "../session";
import { type Selection, surround, useAddress } from "../state";
import { texts } from "../texts";
import { cutDocument, type Piece } from "./cutDocument";

// Characters that one request loads, and those before a marked span that the first one loads.
const WINDOW = 6000;
const BEFORE = 1500;

interface DocumentProps {
  document: Document;
  /** The marked span. */
  span: Selection["span"];
  /** The passage that is shown. */
  unit?: TextUnitDetails;
}

export function DocumentView({ document, span, unit }: DocumentProps) {
  const entities = unit?.entities ?? [];
  // The first heading is often the title.
  const headings = unit?.headings.split(" > ").filter((heading) => heading !== document.title).join(" > ");
  const { href } = useAddress();
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? entities : entities.slice(0, 12);
  return (
    <article>
      <header class="document-head">
        <h2 dir="auto">{document.title}</h2>
        {headings && <p class="muted" dir="auto">{headings}</p>}
        {unit && span && <CitationSteps unit={unit.number} span={span} />}
      </header>
      <DocumentFacts document={document} />
      {entities.length > 0 && (
        <Section title={texts.evidence.named} count={entities.length}>
          <ul class="chips">
            {unit && (
              <li><a class="chip action" href={href({ around: surround("text_unit", unit.number) })}>{texts.around.showEntities}</a></li>
            )}
            {shown.map((entity) => <li key={entity.number}><EntityChip number={entity.number} title={entity.title} /></li>)}
            {shown.length < entities.length && (
              <li><button type="button" class="chip" onClick={() => setOpen(true)}>
                {texts.showMore(entities.length - shown.length)}
              </button></li>
            )}
          </ul>
        </Section>
      )}
      <DocumentPages number={document.number} span={span} />
    </article>
  );
}

/** The citation of an answer at which the reader is, with links to those before and after it. */
function CitationSteps({ unit, span }: { unit: number; span: NonNullable<Selection["span"]> }) {
  const { turns } = useContext(ConversationContext);
  const { select } = useAddress();
  const isHere = ({ text_unit, start_char, end_char }: Citation) =>
    text_unit === unit && start_char === span.start && end_char === span.end;
  const citations = turns.map(({ answer }) => answer?.citations ?? []).reverse().find((all) => all.some(isHere)) ?? [];
  const at = citations.findIndex(isHere);
  if (citations.length < 2) return null;
  const step = (to: number, name: string, sign: string) => {
    const citation = citations[to];
    return citation
      ? (
        <a class="button" aria-label={name} title={name} href={select({
          kind: "text_unit", number: citation.text_unit, span: { start: citation.start_char, end: citation.end_char },
        })}>{sign}</a>
      )
      : <span class="button" aria-hidden="true" data-off>{sign}</span>;
  };
  return (
    <nav class="citation-steps" aria-label={texts.evidence.citations}>
      {step(at - 1, texts.evidence.previous, "‹")}
      <span>{texts.evidence.citationOf(citations[at]!.number, citations.length)}</span>
      {step(at + 1, texts.evidence.next, "›")}
    </nav>
  );
}

function DocumentFacts({ document }: { document: Document }) {
  const { title, path, date, language } = document;
  const metadata = readMetadata(document.metadata);
  return (
    <>
      <p class="facts">
        {path && path !== title && <span dir="auto">{path}</span>}
        {date && <span>{texts.evidence.dated(date)}</span>}
        {language && <span>{language}</span>}
      </p>
      <div class="actions"><OnlyThis document={document} /></div>
      {metadata.length > 0 && <details><summary>{texts.evidence.metadata}</summary><Pairs pairs={metadata} /></details>}
    </>
  );
}

function OnlyThis({ document }: { document: Document }) {
  const { address, href } = useAddress();
  // Characters that mean something in a pattern stand in brackets to mean themselves.
  const pattern = document.path.replace(/[[*?]/g, "[$&]");
  const documents = { ...address.filters.documents, path: [pattern] };
  return <a class="button" href={href({ filters: { ...address.filters, documents } })}>{texts.filters.onlyDocument}</a>;
}

/** Parse the metadata of a document, which is JSON, into names and texts. */
function readMetadata(metadata: unknown): [string, string][] {
  const values = typeof metadata === "string" ? attempt(() => JSON.parse(metadata) as unknown) : metadata;
  if (!values || typeof values !== "object") return [];
  return Object.entries(values).map(([name, value]) => [
    name, typeof value === "string" ? value : JSON.stringify(value),
  ]);
}

interface PagesProps { number: number; span: Selection["span"] }

/** The loaded part of the text, and what loads more of it. */
function DocumentPages({ number, span }: PagesProps) {
  const { data } = useData();
  const [parts, setParts] = useState<DocumentText[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const busy = useRef(false);
  const body = useRef<HTMLDivElement>(null);
  const heightBefore = useRef(0);
  const load = (from: number, to: number, place: "before" | "after") => {
    if (busy.current || to <= from) return;
    busy.current = true;
    data.documentText(number, from, to, new AbortController().signal).then((part) => {
      heightBefore.current = place === "before" ? body.current?.scrollHeight ?? 0 : 0;
      setParts((loaded) => (place === "before" ? [part, ...loaded] : [...loaded, part]));
    }, setError).finally(() => { busy.current = false; });
  };
  useEffect(() => {
    if (error || parts.length) return;
    const from = Math.max(0, (span?.start ?? 0) - BEFORE);
    load(from, Math.max(from + WINDOW, (span?.end ?? 0) + BEFORE), "after");
  }, [error]);
  useLayoutEffect(() => {
    const scroller = body.current?.closest(".panel-body");
    if (!scroller || !body.current) return;
    if (parts.length === 1) body.current.querySelector("mark")?.scrollIntoView({ block: "center" });
    // Text that is added above must not move the text that is being read.
    else if (heightBefore.current) scroller.scrollTop += body.current.scrollHeight - heightBefore.current;
    heightBefore.current = 0;
  }, [parts]);
  const first = parts[0], last = parts.at(-1);
  if (error) return <Failure error={error} onRetry={() => setError(null)} />;
  if (!first || !last) return <Busy />;
  const length = last.n_characters;
  const page = span && parts.flatMap((part) => part.pages ?? [])
    .find(({ kind, start_char, end_char }) => ["page", "figure"].includes(kind) && start_char <= span.start && span.start < end_char);
  return (
    <div class="document" ref={body}>
      {span && page && data.pagePicture && <PagePicture document={number} page={page} span={span} />}
      {first.start_char > 0 && (
        <LoadEdge label={texts.evidence.earlier}
          onReach={() => load(Math.max(0, first.start_char - WINDOW), first.start_char, "before")} />
      )}
      {parts.map((part) => <DocumentPart key={part.start_char} part={part} span={span} />)}
      {last.end_char < length && (
        <LoadEdge label={texts.evidence.later}
          onReach={() => load(last.end_char, Math.min(length, last.end_char + WINDOW), "after")} />
      )}
    </div>
  );
}

interface PictureProps { document: number; page: PageSpan; span: NonNullable<Selection["span"]> }

/** The page as a person saw it, with the span marked. */
function PagePicture({ document, page, span }: PictureProps) {
  const { data } = useData();
  const picture = useRef<HTMLImageElement>(null);
  const { value, error } = useLoaded(
    async (signal) => URL.createObjectURL(await data.pagePicture!(document, page.number, span, signal)),
    [document, page.number, span.start, span.end],
  );
  useEffect(() => (value ? () => URL.revokeObjectURL(value) : undefined), [value]);
  if (error) return <p class="muted">{error.message}</p>;
  if (!value) return <Busy />;
  const name = texts.evidence.page(page.label || String(page.number), page.engine, page.kind);
  return (
    <figure class="page-picture">
      <a href={value} target="_blank" rel="noreferrer">
        <img ref={picture} src={value} alt={name} onLoad={() => picture.current?.scrollIntoView({ block: "nearest" })} />
      </a>
      <figcaption class="muted">{name}</figcaption>
    </figure>
  );
}

/** A button at the edge of the loaded text, pressed by scrolling to it or by hand. */
function LoadEdge({ label, onReach }: { label: string; onReach: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  const reach = useRef(onReach);
  reach.current = onReach;
  useEffect(() => {
    // Wait for the first scroll: the edge may be in sight before the marked span is.
    const scroller = button.current?.closest(".panel-body");
    const check = () => {
      const box = button.current?.getBoundingClientRect(), around = scroller?.getBoundingClientRect();
      if (box && around && box.bottom > around.top && box.top < around.bottom) reach.current();
    };
    scroller?.addEventListener("scroll", check, { passive: true });
    return () => scroller?.removeEventListener("scroll", check);
  }, []);
  return <button type="button" class="more" ref={button} onClick={onReach}>{label}</button>;
}

/** One loaded part, divided at the beginnings of text units. */
function DocumentPart({ part, span }: { part: DocumentText; span: Selection["span"] }) {
  const pieces = useMemo(() => cutDocument(part, span), [part, span]);
  return <div class="document-part" dir="auto">{pieces.map((piece, at) => <PieceView key={at} {...piece} />)}</div>;
}

function PieceView({ text, textUnit, entity, isMarked }: Piece) {
  const { select } = useAddress();
  if (textUnit !== undefined) {
    return (
      <a class="unit-label" href={select({ kind: "text_unit", number: textUnit })}>
        {texts.referenceMark("text_unit", textUnit)}
      </a>
    );
  }
  const content = entity === undefined ? text : <MentionLink entity={entity} text={text} />;
  return isMarked ? <mark>{content}</mark> : <>{content}</>;
}

function MentionLink({ entity, text }: { entity: number; text: string }) {
  return <a class="mention" {...useLink("entity", entity)}>{text}</a>;
}
