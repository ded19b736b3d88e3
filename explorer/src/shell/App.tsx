/** The page: it finds the index of the address, and shows the workspace or what is missing. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, type IndexSummary } from "../api";
import { Conversation, ConversationContext } from "../ask/conversation";
import { Management } from "../manage/management";
import {
  Busy, DataContext, Failure, type Loaded, type OpenIndex, ServerReturns, useAbortedEffect, useLoaded, useRepeatedLook,
} from "../parts/useData";
import { Connection } from "../served/Connection";
import { ServedIndex } from "../served/ServedIndex";
import { readKey, writeKey } from "../session";
import { StateProvider, useAddress } from "../state";
import { texts } from "../texts";
import { Header } from "./Header";
import { Workspace } from "./Workspace";

/** An index whose rows are in the page, with a sentence on what it lacks. */
type EmbeddedIndex = OpenIndex & { notice?: string };

/** With `embedded`, the page shows that index, and needs no server. */
export function App({ embedded }: { embedded?: EmbeddedIndex | undefined }) {
  return <StateProvider>{embedded ? <StaticPage open={embedded} /> : <ServedPage />}</StateProvider>;
}

function StaticPage({ open }: { open: EmbeddedIndex }) {
  const { address, go } = useAddress();
  const { name } = open.summary;
  useEffect(() => {
    if (address.index !== name) go({ index: name }, true);
  }, [address.index]);
  return (
    <DataContext.Provider value={open}>
      <Header indexes={[]} />
      {open.notice && <div class="banner">{open.notice}</div>}
      <Workspace onRetry={() => {}} />
    </DataContext.Provider>
  );
}

/** Connect to the server with the key of the reader. */
function useConnection() {
  const [key, setKey] = useState(readKey);
  const [isRefused, setRefused] = useState(false);
  const [version, setVersion] = useState(0);
  const [nUnreadable, setUnreadable] = useState(0);
  const [server, setServer] = useState({ isLost: false, nReturns: 0 });
  const connection = useMemo(() => {
    // A relative address also works behind a proxy that serves the page under a path.
    const made = new Connection("", readKey);
    made.onUnauthorized = () => setRefused(true);
    made.onVersion = setVersion;
    made.onUnreadable = () => setUnreadable((count) => count + 1);
    made.onReach = (isReached) => setServer((before) => (
      before.isLost !== isReached ? before : { isLost: !isReached, nReturns: before.nReturns + Number(isReached) }
    ));
    return made;
  }, [key]);
  useRepeatedLook((signal) => connection.look(signal), server.isLost);
  const enterKey = useCallback((entered: string) => {
    writeKey(entered);
    setRefused(false);
    setKey(entered);
  }, []);
  return { connection, key, isRefused, enterKey, version, nUnreadable, ...server };
}

function ServedPage() {
  const server = useConnection();
  return (
    <ServerReturns.Provider value={server.nReturns}>
      {server.isLost && <div class="banner lost" role="alert">{texts.errors.waitForServer}</div>}
      <IndexPage {...server} />
    </ServerReturns.Provider>
  );
}

function IndexPage({
  connection, key, isRefused, enterKey, version, nUnreadable,
}: ReturnType<typeof useConnection>) {
  const { address, go } = useAddress();
  const [attempt, setAttempt] = useState(0);
  const indexes = useLoaded((signal) => connection.indexes(signal), [key, attempt]);
  const retry = () => setAttempt((count) => count + 1);
  const first = indexes.value?.[0]?.name;
  useEffect(() => {
    if (first && !address.index) go({ index: first }, true);
  }, [first, address.index]);
  const summary = indexes.value?.find((index) => index.name === address.index);
  useEffect(() => { if (!summary) document.title = texts.title; }, [summary?.name]);
  const open = useMemo<OpenIndex | null>(
    () => (summary ? {
      data: new ServedIndex(connection, summary.name, address.version), summary,
      manage: new Management(connection, summary.name),
    } : null),
    [connection, summary, address.version],
  );
  // The conversation stays while the reader looks at other versions of the index.
  const conversation = useMemo(() => new Conversation(address.index), [address.index]);
  useEffect(() => () => conversation.cancel(), [conversation]);
  useAbortedEffect((signal) => {
    if (!nUnreadable || !summary?.version) return;
    // A single table may be unreadable too: the page changes only if the whole index is.
    connection.indexes(signal).then((found) => {
      if (!found.find(({ name }) => name === summary.name)?.version) retry();
    }, () => {});
  }, [nUnreadable]);
  if (isRefused) {
    // A key that opened the list of indexes was valid.
    const problem = indexes.value ? texts.key.revoked : texts.key.wrong;
    return <KeyPrompt problem={key && problem} onEnter={enterKey} />;
  }
  return (
    <DataContext.Provider value={open}>
      <Header indexes={indexes.value ?? []} onLeave={key ? () => enterKey("") : undefined} />
      {open && version > open.summary.version && <NewVersion open={open} version={version} onShow={retry} />}
      {open
        ? (
          <ConversationContext.Provider value={conversation}>
            <Workspace key={`${address.index}/${address.version}/${attempt}`} onRetry={retry} />
          </ConversationContext.Provider>
        )
        : <main class="message"><Missing indexes={indexes} onRetry={retry} /></main>}
    </DataContext.Provider>
  );
}

interface MissingProps { indexes: Loaded<IndexSummary[]>; onRetry: () => void }

/** What stands in the place of the workspace while no index can be shown. */
function Missing({ indexes, onRetry }: MissingProps): ComponentChildren {
  const { address } = useAddress();
  if (indexes.error) return <Failure error={indexes.error} onRetry={onRetry} />;
  if (!indexes.value) return <Busy />;
  if (!indexes.value.length) return <p>{texts.errors.noIndexes}</p>;
  if (!address.index) return <Busy />;
  return <Failure error={new ApiError(404, "no_such_index", texts.errors.noSuchIndex(address.index))} />;
}

/** A newer version than the shown one: what has changed in it, and ways to see that. */
function NewVersion({ open, version, onShow }: { open: OpenIndex; version: number; onShow: () => void }) {
  const { go } = useAddress();
  const { data, summary } = open;
  const from = summary.version;
  const counts = useLoaded((signal) => Promise.all((["documents", "entities", "reports"] as const).map(async (table) => (
    [table, (await data.changedRows!(table, { from, to: version, limit: 1 }, signal)).counts] as const
  ))), [summary.name, from, version]).value;
  const changed = counts?.flatMap(([table, found]) => texts.versions.changedRows(table, found)).join(", ");
  return (
    <div class="banner" role="status">
      {texts.versions.newer}{changed && ` ${changed}.`}{" "}
      <button type="button" onClick={onShow}>{texts.versions.show}</button>{" "}
      <button type="button" onClick={() => { go({ panel: "versions", version: null, compare: from }); onShow(); }}>
        {texts.versions.showChanges}
      </button>
    </div>
  );
}

interface KeyPromptProps {
  /** Why the last key was refused; empty if there was none. */
  problem: string;
  onEnter: (key: string) => void;
}

function KeyPrompt({ problem, onEnter }: KeyPromptProps) {
  const [key, setKey] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (key.trim()) onEnter(key.trim());
  };
  return (
    <main class="message">
      <form class="key-form" onSubmit={submit}>
        <h1>{texts.key.title}</h1>
        <p>{texts.key.explained}</p>
        {problem && <p class="failure" role="alert">{problem}</p>}
        <label class="field">
          <span>{texts.key.label}</span>
          <input type="password" value={key} autocomplete="off" spellcheck={false} autofocus
            aria-invalid={Boolean(problem)} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={!key.trim()}>{texts.key.enter}</button>
      </form>
    </main>
  );
}
