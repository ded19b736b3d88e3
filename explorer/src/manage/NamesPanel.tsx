/** Names that may mean the same thing, and what was decided about names. */

import { useState } from "preact/hooks";
import { More, Section } from "../parts/PagedList";
import { Await, Failure, useAction, useData, useLoaded, useManagement } from "../parts/useData";
import { texts } from "../texts";
import { DecisionView } from "./Curate";
import type { Decision, DoubtfulPair, Resolutions } from "./rows";

// Number of rows of each list that are loaded first, and more with each press of the button.
const LISTED = 50;

export function NamesPanel() {
  const { summary } = useData();
  const manage = useManagement();
  const [changes, setChanges] = useState(0);
  const [limit, setLimit] = useState(LISTED);
  const loaded = useLoaded((signal) => manage.resolutions(limit, signal), [summary.name, summary.version, changes, limit]);
  const noteChange = () => setChanges((count) => count + 1);
  return (
    <div class="panel-body">
      <p class="muted">{texts.curate.explained}</p>
      <Await loaded={loaded}>
        {(resolutions) => (
          <>
            <Section title={texts.names.doubtful} count={resolutions.n_doubtful}>
              {resolutions.doubtful.map((pair) => (
                <PairView key={`${pair.title}/${pair.other}`} pair={pair} onDecided={noteChange} />
              ))}
              {!resolutions.n_doubtful && <p class="muted">{texts.none}</p>}
            </Section>
            <Decided resolutions={resolutions} onUndone={noteChange} />
            {limit < Math.max(resolutions.n_doubtful, resolutions.n_resolved) && limit < 500 && (
              <More left={null} onShow={() => setLimit(500)} />
            )}
          </>
        )}
      </Await>
    </div>
  );
}

function PairView({ pair, onDecided }: { pair: DoubtfulPair; onDecided: () => void }) {
  const [draft, setDraft] = useState<Decision | null>(null);
  const [isRecorded, setRecorded] = useState(false);
  const names = [pair.title, pair.other];
  const title = pair.other_frequency > pair.frequency ? pair.other : pair.title;
  const change = (decision: Decision | null) => {
    setDraft(decision);
    if (!decision && isRecorded) onDecided();
  };
  if (draft) {
    return <div class="job"><DecisionView decision={draft} onChange={change} onRecorded={() => setRecorded(true)} /></div>;
  }
  return (
    <div class="job">
      <p dir="auto"><strong>{pair.title}</strong> · <strong>{pair.other}</strong></p>
      <p class="muted">{pair.evidence.join(", ")}</p>
      <button type="button" onClick={() => setDraft({ kind: "merge", title, names })}>{texts.names.same}</button>{" "}
      <button type="button" onClick={() => setDraft({ kind: "never", names })}>{texts.names.notSame}</button>
    </div>
  );
}

/** The decisions of the file, and the names that rules or a model have merged; each can be undone. */
function Decided({ resolutions, onUndone }: { resolutions: Resolutions; onUndone: () => void }) {
  const { titles, never, split } = resolutions;
  // What a person decided stands among the decisions; after an undo, only the next run removes it here.
  const resolved = resolutions.resolved.filter(({ decided_by }) => decided_by !== "person");
  const decisions = [
    ...titles.map(({ name, title }) => ({ names: [name, title], text: texts.names.called(name, title) })),
    ...never.map((names) => ({ names: names.slice(0, 2), text: texts.curate.describe({ kind: "never", names }) })),
    ...split.map(({ name }) => ({ names: [name], text: texts.names.split(name) })),
  ];
  return (
    <>
      <Section title={texts.names.decided} count={decisions.length}>
        {decisions.map(({ names, text }) => <UndoRow key={text} names={names} text={text} onUndone={onUndone} />)}
        {!decisions.length && <p class="muted">{texts.none}</p>}
      </Section>
      {resolved.length > 0 && (
        <Section title={texts.names.resolved} count={resolved.length}>
          {resolved.map(({ title, resolved: kept, decided_by }) => (
            <UndoRow key={`${title}/${kept}`} names={[title, kept]} note={decided_by}
              text={texts.names.called(title, kept)} onUndone={onUndone} />
          ))}
        </Section>
      )}
    </>
  );
}

interface UndoRowProps { names: string[]; text: string; note?: string; onUndone: () => void }

function UndoRow({ names, text, note, onUndone }: UndoRowProps) {
  const manage = useManagement();
  const { act, isBusy, error } = useAction();
  const undo = () => act(async () => {
    await manage.undoNames(names);
    onUndone();
  });
  return (
    <>
      <div class="row">
        <span class="row-name" dir="auto">{text}</span>
        {note && <span class="row-note">{note}</span>}
        <button type="button" class="plain" disabled={isBusy} onClick={undo} aria-label={`${texts.curate.undo}: ${text}`}>
          {texts.curate.undo}
        </button>
      </div>
      {error !== null && <Failure error={error} />}
    </>
  );
}
