/** A quotation that opens its document at the quoted span. */

import type { Span, TextUnit } from "../api";
import { useAddress } from "../state";

export function Passage({ span }: { span: Span }) {
  const { select } = useAddress();
  const { document, title, start_char: start, end_char: end, text } = span;
  return (
    <a class="passage" href={select({ kind: "document", number: document, span: { start, end } })}>
      <q dir="auto">{text}</q>
      <span class="row-note" dir="auto">{title}</span>
    </a>
  );
}

/** A text unit; `isCounted` if it is all that two entities have in common. */
export function TextUnitLink({ unit, isCounted = false }: { unit: TextUnit; isCounted?: boolean }) {
  const { select } = useAddress();
  return (
    <a class={`passage ${isCounted ? "counted" : ""}`} href={select({ kind: "text_unit", number: unit.number })}>
      <span class="clamped" dir="auto">{unit.text}</span>
      <span class="row-note" dir="auto">{unit.headings || unit.document_title}</span>
    </a>
  );
}
