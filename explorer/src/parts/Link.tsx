/** Links to the things of an index. Pointing at one lights it in the graph. */

import type { ComponentChildren } from "preact";
import type { Community, Entity, Relationship, Span, TextUnit } from "../api";
import { useAddress, useLighting } from "../state";
import { texts } from "../texts";

/** A row of a list that leads nowhere. */
export function Line({ name, note }: { name: string; note: ComponentChildren }) {
  return <span class="row"><span class="row-name" dir="auto">{name}</span><span class="row-note">{note}</span></span>;
}

interface EntityLinkProps {
  entity: Pick<Entity, "number" | "title"> & { type?: string };
  note?: ComponentChildren;
}

export function EntityLink({ entity, note }: EntityLinkProps) {
  const { select } = useAddress();
  const { number, title, type = "" } = entity;
  const lighting = useLighting({ entities: [number] });
  return (
    <a href={select({ kind: "entity", number })} class="row" {...lighting}>
      <span class="row-name" dir="auto">{title}</span>
      <span class="row-note">{note ?? type}</span>
    </a>
  );
}

export function EntityChip({ number, title }: { number: number; title: string }) {
  const { select } = useAddress();
  const lighting = useLighting({ entities: [number] });
  return <a class="chip" dir="auto" href={select({ kind: "entity", number })} {...lighting}>{title}</a>;
}

interface CommunityLinkProps {
  community: Pick<Community, "community" | "title" | "size">;
  note?: ComponentChildren;
}

export function CommunityLink({ community, note }: CommunityLinkProps) {
  const { select } = useAddress();
  const number = community.community;
  const lighting = useLighting({ communities: [number] });
  return (
    <a href={select({ kind: "community", number })} class="row" {...lighting}>
      <span class="row-name" dir="auto">{community.title}</span>
      <span class="row-note">{note ?? texts.entities(community.size)}</span>
    </a>
  );
}

/** A relationship: seen from the entity `from`, or with both its ends. */
export function RelationshipLink(
  { relationship, from }: { relationship: Relationship; from?: number },
) {
  const { select } = useAddress();
  const { number, source, target, source_title, target_title, type, stated } = relationship;
  const lighting = useLighting({ relationships: [number], entities: [source, target] });
  const name = from === undefined
    ? texts.ends(source_title, target_title)
    : source === from ? target_title : source_title;
  return (
    <a href={select({ kind: "relationship", number })} {...lighting} class={`row relationship-row ${stated ? "" : "counted"}`}>
      <span class="row-name" dir="auto">
        {name}
        {type && <span class="tag">{type}</span>}
        <span class="row-text">{stated ? relationship.description : texts.countedTogether}</span>
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
