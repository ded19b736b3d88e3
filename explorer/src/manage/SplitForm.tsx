/** The choice of the documents in which a name means another thing. */

import { useState } from "preact/hooks";
import type { EntityDetails, Span } from "../api";
import { PageEnd, usePages } from "../parts/PagedList";
import { useData } from "../parts/useData";
import { texts } from "../texts";
import { Failure } from "../parts/Loading";
import type { Part } from "./rows";
import { useAction } from "./useManagement";

interface SplitFormProps { entity: EntityDetails; onSplit: (parts: Part[]) => void }

export function SplitForm(props: SplitFormProps) {
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
