/** How an answer came about: the search that was chosen, and the rows that it read. */

import type { Answer, ContextRow } from "../api";
import { FormattedText, SECTION_KINDS } from "../parts/FormattedText";
import { Line, RowLink } from "../parts/Link";
import { Pairs } from "../parts/PagedList";
import { type Kind, useAddress } from "../state";
import { texts } from "../texts";
import { contextRows } from "./citedRows";

// Sections of a prompt, in the order in which they are shown; then follow others.
const SECTIONS = ["Reports", "Sources", "Entities", "Relationships"];

interface LookedAtProps { answer: Answer; ask: (question: string) => void }

export function LookedAt({ answer, ask }: LookedAtProps) {
  const { looked_at, notes, parameters, left_out, trace_id } = answer;
  const context = answer.context_rows ?? answer.context ?? {};
  const counts = Object.entries(looked_at).filter(([, count]) => count > 0);
  const settings = Object.entries(parameters).map(([name, value]) => (
    [name, typeof value === "object" ? JSON.stringify(value) : String(value)] as const
  ));
  const others = Object.keys(context).filter((name) => !SECTIONS.includes(name));
  return (
    <details class="looked-at">
      <summary>{texts.ask.lookedAt}</summary>
      {notes.length > 0 && <ul class="notes">{notes.map((note) => <li key={note} dir="auto">{note}</li>)}</ul>}
      {counts.length > 0 && (
        <p class="facts">{counts.map(([name, count]) => <span key={name}>{texts.lookedAtCount(name, count)}</span>)}</p>
      )}
      {SECTIONS.map((section) => <ReadRows key={section} section={section} rows={readRows(answer, section)} />)}
      <SubQuestions answer={answer} ask={ask} />
      {others.map((section) => <ReadRows key={section} section={section} rows={context[section] ?? []} />)}
      {left_out.length > 0 && <LeftOut numbers={left_out} />}
      <details>
        <summary>{texts.ask.parameters}</summary>
        <Pairs pairs={[...settings, ...(trace_id ? [[texts.ask.trace, trace_id] as const] : [])]} />
      </details>
    </details>
  );
}

/** Return the rows of a section that were read; those of reports have their scores. */
function readRows(answer: Answer, section: string): ContextRow[] {
  const rows = contextRows(answer, section);
  if (section !== "Reports" || !answer.reports?.length) return rows;
  const byNumber = new Map(rows.map(({ id, text }) => [id, text]));
  return answer.reports.map(({ community, title, score }) => {
    // The text of a report begins with its title.
    const text = String(byNumber.get(community) ?? "").replace(/^#+ /, "").slice(title.length);
    return { id: community, title, score, text: text.replace(/^[:\s]+/, "").slice(0, 200) };
  });
}

function SubQuestions({ answer, ask }: LookedAtProps) {
  const asked = answer.sub_questions ?? [];
  if (!asked.length) return null;
  return (
    <details>
      <summary>{texts.ask.subQuestions} <span class="count">{texts.number(asked.length)}</span></summary>
      <ol class="list">
        {asked.map(({ question, answer: said, score }) => (
          <li key={question}>
            <button type="button" class="plain" dir="auto" title={texts.ask.askThis} onClick={() => ask(question)}>
              {question}
            </button>
            {score !== null && <span class="row-note"> {formatNote(score)}</span>}
            {said && <FormattedText text={said} />}
          </li>
        ))}
      </ol>
    </details>
  );
}

interface ReadRowsProps { section: string; rows: ContextRow[] }

function ReadRows({ section, rows }: ReadRowsProps) {
  if (!rows.length) return null;
  const kind = SECTION_KINDS[section.toLowerCase()];
  return (
    <details>
      <summary>{texts.sections[section] ?? section} <span class="count">{texts.number(rows.length)}</span></summary>
      <ul class="list">
        {rows.map((row, at) => (
          <li key={at}>
            {kind && typeof row.id === "number"
              ? <ReadRow kind={kind} number={row.id} row={row} />
              : <Line name={nameOf(row)} note="" />}
          </li>
        ))}
      </ul>
    </details>
  );
}

function ReadRow({ kind, number, row }: { kind: Kind; number: number; row: ContextRow }) {
  const text = <span class="row-text">{String(row.why ?? row.description ?? row.text ?? "")}</span>;
  // A score, a place on a path, or the reason for which a passage was read.
  const note = formatNote(row.score ?? row.rating ?? row.rank ?? row.place);
  return <RowLink kind={kind} number={number} name={<>{nameOf(row)}{text}</>} note={note} />;
}

function LeftOut({ numbers }: { numbers: number[] }) {
  const { select } = useAddress();
  return (
    <p class="muted">
      {texts.ask.leftOut(numbers.length)}{" "}
      {numbers.slice(0, 20).map((number) => (
        <a key={number} href={select({ kind: "community", number })}>{texts.referenceMark("community", number)}{" "}</a>
      ))}
    </p>
  );
}

const formatNote = (note: unknown) => (typeof note === "number" ? texts.decimal(note) : String(note ?? ""));

/** Return what a row of a prompt is called. */
function nameOf(row: ContextRow): string {
  if (row.source && row.target) return texts.ends(String(row.source), String(row.target));
  const name = row.title ?? row.document ?? row.question ?? row.point;
  const text = name === undefined ? firstLine(String(row.text ?? Object.values(row).join(" · "))) : String(name);
  return row.document && row.headings ? `${text}: ${String(row.headings)}` : text;
}

/** Return the beginning of a text, such as the title of a report. */
function firstLine(text: string): string {
  const line = text.replace(/^#+ /, "").split("\n", 1)[0] ?? "";
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
