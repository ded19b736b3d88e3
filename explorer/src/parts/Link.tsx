/** Links to the things and the texts of an index. Pointing at a thing lights it in the graph. */

import type { ComponentChildren } from "preact";
import type { Community, Entity, Relationship, Span, TextUnit } from "../api";
import { type Highlight, type Kind, useAddress, useLighting } from "../state";
import { texts } from "../texts";

const LISTS = { entity: "entities", relationship: "relationships", community: "communities" } as const;

/** Return properties of a link to a thing, which lights it, and `others` with it. */
export function useLink(kind: Kind, number: number, others: Partial<Highlight> = {}) {
  const { select } = useAddress();
  const lit = kind in LISTS ? { [LISTS[kind as keyof typeof LISTS]]: [number] } : {};
  return { href: select({ kind, number }), ...useLighting({ ...others, ...lit }) };
}

interface LineProps { name: ComponentChildren; note: ComponentChildren }

const NameAndNote = ({ name, note }: LineProps) => (
  <><span class="row-name" dir="auto">{name}</span><span class="row-note" dir="auto">{note}</span></>
);

/** A row of a list that leads nowhere. */
export const Line = (props: LineProps) => <span class="row"><NameAndNote {...props} /></span>;

/** A row of a list that leads to a thing. */
export function RowLink({ kind, number, ...line }: LineProps & { kind: Kind; number: number }) {
  return <a class="row" {...useLink(kind, number)}><NameAndNote {...line} /></a>;
}

export function EntityLink({ entity }: { entity: Pick<Entity, "number" | "title"> & { type?: string } }) {
  return <RowLink kind="entity" number={entity.number} name={entity.title} note={entity.type} />;
}

export function EntityChip({ number, title }: { number: number; title: string }) {
  return <a class="chip" dir="auto" {...useLink("entity", number)}>{title}</a>;
}

interface CommunityLinkProps { community: Pick<Community, "community" | "title" | "size">; note?: string | undefined }

export function CommunityLink({ community: { community, title, size }, note }: CommunityLinkProps) {
  return <RowLink kind="community" number={community} name={title} note={note ?? texts.entities(size)} />;
}

/** A relationship: seen from the entity `from`, or with both its ends. */
export function RelationshipLink({ relationship, from }: { relationship: Relationship; from?: number }) {
  const { number, source, target, source_title, target_title, type, stated } = relationship;
  const link = useLink("relationship", number, { entities: [source, target] });
  const other = source === from ? target_title : source_title;
  return (
    <a {...link} class={`row relationship-row ${stated ? "" : "counted"}`}>
      <span class="row-name" dir="auto">
        {from === undefined ? texts.ends(source_title, target_title) : other}
        {type && <span class="tag">{type}</span>}
        <span class="row-text clamped">{stated ? relationship.description : texts.countedTogether}</span>
      </span>
      <span class="row-note" title={texts.weight}>{texts.decimal(relationship.weight)}</span>
    </a>
  );
}

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

/** The end of a chip, which says what pressing it does. */
export const Remove = ({ label = texts.filters.remove }: { label?: string }) => (
  <><span aria-hidden="true"> ×</span><span class="unseen">{label}</span></>
);
