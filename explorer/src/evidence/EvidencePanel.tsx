/** The panel with the details of what is selected. */

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Details, TextUnitDetails } from "../api";
import { Await, useData, useLoaded } from "../parts/useData";
import { type Selection, useAddress } from "../state";
import { texts } from "../texts";
import { CommunityView } from "./CommunityView";
import { DocumentView } from "./DocumentView";
import { EntityView } from "./EntityView";
import { PathView } from "./PathView";
import { RelationshipView } from "./RelationshipView";

/** `onTitle` gets the name of what is shown; empty: nothing is. */
export function EvidencePanel({ onTitle }: { onTitle: (title: string) => void }) {
  const { address, go } = useAddress();
  const { selection, path } = address;
  const panel = useRef<HTMLElement>(null);
  const key = JSON.stringify(selection ?? path);
  const opener = useMovingFocus(panel, key, Boolean(selection ?? path));
  if (!selection && !path) return null;
  const close = () => {
    opener.current?.focus();
    go(selection ? { selection: null } : { path: null });
  };
  return (
    <section class="panel evidence" aria-label={texts.evidence.panel} ref={panel} tabIndex={-1}
      onKeyDown={(event) => { if (event.key === "Escape") close(); }}>
      <div class="panel-head">
        <span class="panel-kind">{selection ? texts.kinds[selection.kind] : texts.path.title}</span>
        <button type="button" class="icon" aria-label={texts.close} title={texts.close} onClick={close}>
          <span aria-hidden="true">×</span>
        </button>
      </div>
      <div class="panel-body">
        {selection ? <Selected key={key} selection={selection} onTitle={onTitle} /> : path && <PathView key={key} {...path} />}
      </div>
    </section>
  );
}

/**
 * Move the focus to a panel when its content changes, if the reader uses the keyboard or was in the
 * panel. Returns where the focus came from: it returns there when the reader closes the panel.
 */
function useMovingFocus(panel: RefObject<HTMLElement | null>, key: string, isOpen: boolean): RefObject<HTMLElement | null> {
  const shownKey = useRef(key);
  const opener = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (shownKey.current === key) return;
    shownKey.current = key;
    const { activeElement } = document;
    if (!isOpen) opener.current = null;
    if (!isOpen) return;
    panel.current?.scrollTo(0, 0);
    // Who moves through the graph with keys goes on there.
    if (activeElement?.getAttribute("role") === "application") return;
    // A link inside the panel is gone with the content before, which leaves the focus on the body.
    const wasInside = activeElement === document.body || panel.current?.contains(activeElement);
    if (!wasInside && !activeElement?.matches(":focus-visible")) return;
    if (!wasInside && activeElement instanceof HTMLElement) opener.current = activeElement;
    panel.current?.focus({ preventScroll: true });
  }, [key]);
  return opener;
}

/** Load the row of a selection, and show its details. */
function Selected({ selection, onTitle }: { selection: Selection; onTitle: (title: string) => void }) {
  const { kind, number, span } = selection;
  const row = { number, onTitle };
  switch (kind) {
    case "entity": return <Row {...row} table="entities">{(entity) => <EntityView entity={entity} />}</Row>;
    case "relationship":
      return <Row {...row} table="relationships">{(relationship) => <RelationshipView relationship={relationship} />}</Row>;
    case "community": return <Row {...row} table="communities">{(community) => <CommunityView community={community} />}</Row>;
    case "text_unit": return <Row {...row} table="text_units">{(unit) => <TextUnitView unit={unit} span={span} />}</Row>;
    case "document":
      return <Row {...row} table="documents">{(document) => <DocumentView document={document} span={span} />}</Row>;
  }
}

/** Return what the page is called that shows the details of a row. */
function titleOf(row: Details[keyof Details]): string {
  if ("source_title" in row) return texts.ends(row.source_title, row.target_title);
  return "document_title" in row ? row.document_title : row.title;
}

interface RowProps<T extends keyof Details> {
  table: T;
  number: number;
  onTitle?: (title: string) => void;
  children: (row: Details[T]) => ComponentChildren;
}

function Row<T extends keyof Details>({ table, number, onTitle, children }: RowProps<T>) {
  const { data } = useData();
  const loaded = useLoaded((signal) => data.row(table, number, signal), [table, number]);
  useEffect(() => { if (loaded.value) onTitle?.(titleOf(loaded.value)); }, [loaded.value]);
  return <Await loaded={loaded}>{children}</Await>;
}

/** A passage is shown in its document, below the entities that it names. */
function TextUnitView({ unit, span }: { unit: TextUnitDetails; span: Selection["span"] }) {
  const whole = { start: unit.start_char, end: unit.end_char };
  return (
    <Row table="documents" number={unit.document}>
      {(document) => <DocumentView document={document} span={span ?? whole} unit={unit} />}
    </Row>
  );
}
