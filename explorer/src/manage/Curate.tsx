/** Decisions of a person about the name of an entity, which may be that of several. The next run applies them. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { EntityDetails, Span } from "../api";
import { EntityChooser } from "../find/FindBox";
import { EntityLink, Line } from "../parts/Link";
import { List, PageEnd, usePages } from "../parts/PagedList";
import { Await, Failure, useAction, useData, useLoaded, useManagement } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import type { Decision, Part } from "./rows";

/** What the reader may decide about an entity; nothing without the scope, or at an earlier version. */
export function Curate({ entity }: { entity: EntityDetails }) {
  const { manage, summary } = useData();
  const { address } = useAddress();
  const [draft, setDraft] = useState<Decision | null>(null);
  if (!manage || !summary.scopes.includes("index") || address.version !== null) return null;
  const { title, frequency } = entity;
  const merge = (other: { title: string; frequency: number }) => setDraft({
    kind: "merge", title: other.frequency > frequency ? other.title : title, names: [title, other.title],
  });
  return (
    <details class="curate">
      <summary>{texts.curate.title}</summary>
      <p class="muted">{texts.curate.explained}</p>
      {draft ? <DecisionView decision={draft} onChange={setDraft} /> : (
        <>
          <div class="actions">
            <EntityChooser label={texts.curate.merge} placeholder={texts.path.toPlaceholder} onChoose={merge} />
            <EntityChooser label={texts.curate.never} placeholder={texts.path.toPlaceholder}
              onChoose={(other) => setDraft({ kind: "never", names: [title, other.title] })} />
          </div>
          <Rename title={title} onRename={(wanted) => setDraft({ kind: "rename", name: title, title: wanted })} />
          <SplitForm entity={entity} onSplit={(parts) => setDraft({ kind: "split", name: title, parts })} />
        </>
      )}
    </details>
  );
}

function Rename({ title, onRename }: { title: string; onRename: (title: string) => void }) {
  const [text, setText] = useState(title);
  const wanted = text.trim();
  const submit = (event: Event) => {
    event.preventDefault();
    onRename(wanted);
  };
  return (
    <form class="rename" onSubmit={submit}>
      <input value={text} dir="auto" maxLength={1000} aria-label={texts.curate.newTitle}
        onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit" disabled={!wanted || wanted === title}>{texts.curate.rename}</button>
    </form>
  );
}

interface DecisionViewProps {
  decision: Decision;
  /** Change the decision; null drops it. */
  onChange: (decision: Decision | null) => void;
  onRecorded?: () => void;
}

/** A decision with the rows that it changes, until the reader has recorded or dropped it. */
export function DecisionView({ decision, onChange, onRecorded }: DecisionViewProps) {
  const manage = useManagement();
  const { href } = useAddress();
  const [isRecorded, setRecorded] = useState(false);
  const { act, isBusy, error } = useAction();
  const preview = useLoaded((signal) => manage.preview(decision, signal), [decision]);
  // The button that led here is gone: the reader is led to what has taken its place.
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [isRecorded]);
  const record = () => act(async () => {
    await manage.record(decision);
    setRecorded(true);
    onRecorded?.();
  });
  const undo = () => act(async () => {
    await manage.undo(decision);
    onChange(null);
  });
  if (isRecorded) {
    return (
      <div role="status" ref={box} tabIndex={-1}>
        <p>{texts.curate.describe(decision)} {texts.curate.recorded}</p>
        {error !== null && <Failure error={error} />}
        <a class="button" href={href({ panel: "documents" })}>{texts.curate.toRuns}</a>{" "}
        <button type="button" disabled={isBusy} onClick={undo}>{texts.curate.undo}</button>{" "}
        <button type="button" onClick={() => onChange(null)}>{texts.close}</button>
      </div>
    );
  }
  return (
    <div role="group" aria-label={texts.curate.preview} ref={box} tabIndex={-1}>
      <p><strong dir="auto">{texts.curate.describe(decision)}</strong></p>
      {decision.kind === "merge" && (
        <label class="field">
          <span>{texts.curate.keptTitle}</span>
          <select value={decision.title} dir="auto"
            onChange={(event) => onChange({ ...decision, title: event.currentTarget.value })}>
            {[...new Set(decision.names)].map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
      )}
      <Await loaded={preview}>
        {({ entities, is_new, n_relationships, n_text_units, n_documents, parts }) => (
          <>
            <p class="muted">{texts.curate.changes(n_relationships, n_text_units, n_documents)}</p>
            <List rows={entities}>{(entity) => <EntityLink entity={entity} />}</List>
            <List rows={parts}>
              {(part) => <Line name={part.title} note={texts.curate.part(part.n_text_units, part.n_documents)} />}
            </List>
            {!is_new && <p>{texts.curate.known}</p>}
          </>
        )}
      </Await>
      {error !== null && <Failure error={error} />}
      <div class="actions">
        {preview.value && !preview.value.is_new
          ? <button type="button" disabled={isBusy} onClick={undo}>{texts.curate.undo}</button>
          : (
            <button type="button" class="primary" disabled={isBusy || !preview.value} onClick={record}>
              {texts.curate.record}
            </button>
          )}
        <button type="button" onClick={() => onChange(null)}>{texts.curate.drop}</button>
      </div>
    </div>
  );
}

interface SplitFormProps { entity: EntityDetails; onSplit: (parts: Part[]) => void }

function SplitForm(props: SplitFormProps) {
  const [isOpen, setOpen] = useState(false);
  return isOpen
    ? <OpenForm {...props} />
    : <button type="button" onClick={() => setOpen(true)}>{texts.curate.split}</button>;
}

function OpenForm({ entity, onSplit }: SplitFormProps) {
  const { data } = useData();
  const [other, setOther] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const { act, isBusy, error } = useAction();
  const pages = usePages<Span>((cursor, signal) => data.mentionsOf(entity.number, cursor, signal), [entity.number]);
  const byDocument = new Map<number, Span[]>();
  for (const span of pages.rows) byDocument.set(span.document, [...(byDocument.get(span.document) ?? []), span]);
  const wanted = other.trim();
  const toggle = (document: number) => {
    const now = new Set(chosen);
    if (!now.delete(document)) now.add(document);
    setChosen(now);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void act(async () => {
      const { signal } = new AbortController();
      const rows = await Promise.all([...chosen].map((number) => data.row("documents", number, signal)));
      onSplit([{ title: wanted, documents: rows.map(({ id }) => id!) }, { title: entity.title }]);
    });
  };
  return (
    <form class="split" onSubmit={submit}>
      <p class="muted">{texts.curate.splitExplained}</p>
      <label class="field">
        <span>{texts.curate.other}</span>
        <input value={other} dir="auto" maxLength={1000} onInput={(event) => setOther(event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>{texts.curate.choose}</legend>
        {[...byDocument].map(([document, [first, ...more]]) => (
          <label key={document} class="choice">
            <input type="checkbox" checked={chosen.has(document)} onChange={() => toggle(document)} />
            <span class="row-name" dir="auto">
              {first!.title}{more.length > 0 && <span class="count"> {texts.number(more.length + 1)}</span>}
              <span class="row-text">{first!.text}</span>
            </span>
          </label>
        ))}
        <PageEnd pages={pages} empty={texts.none} />
      </fieldset>
      {error !== null && <Failure error={error} />}
      <button type="submit" disabled={!wanted || wanted === entity.title || !chosen.size || isBusy}>{texts.curate.next}</button>
    </form>
  );
}
