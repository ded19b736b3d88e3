/** The documents of the index: files are added and removed, and a run brings the index up to date. */

import { useState } from "preact/hooks";
import { List, More, SearchField, Section } from "../parts/PagedList";
import { Await, Failure, useAction, useData, useLoaded, useManagement } from "../parts/useData";
import { texts } from "../texts";
import type { InputFile, InputFiles } from "./rows";
import { Runs } from "./Runs";
import { DropArea, Upload, useUploads } from "./Upload";

// Number of files that are listed first, and more with each press of the button.
const LISTED = 50;
const MAX_SKIPPED = 200;

export function DocumentsPanel() {
  const { summary } = useData();
  const manage = useManagement();
  const { nEnds } = useUploads();
  const [changes, setChanges] = useState(0);
  const noteChange = () => setChanges((count) => count + 1);
  const files = useLoaded((signal) => manage.files(signal), [summary.name, changes, nEnds]);
  // The list stays while it is loaded again.
  const [last, setLast] = useState<InputFiles>();
  if (files.value && files.value !== last) setLast(files.value);
  const shown = files.value ?? last;
  return (
    <DropArea limits={shown}>
      <p class="muted">{texts.documents.explained}</p>
      <Runs onEnd={noteChange} />
      <Upload limits={shown} />
      <Section title={texts.documents.files} count={shown?.files.length ?? null}>
        {shown && !files.error
          ? <Files files={shown.files} onRemoved={noteChange} />
          : <Await loaded={files}>{() => null}</Await>}
        {shown && <NotRead files={[]} skipped={shown.skipped} skipped_summary={shown.skipped_summary} />}
      </Section>
    </DropArea>
  );
}

/** The files with a problem, and those that a run skips, with the reasons. */
export function NotRead({ files, skipped, skipped_summary }: Omit<InputFiles, "max_bytes">) {
  const unread = files.filter(({ problem }) => problem).map(({ path, problem: reason }) => ({ path, reason }));
  const list = (summary: string, rows: readonly { path: string; reason: string }[]) => rows.length > 0 && (
    <details class="skipped">
      <summary>{summary}</summary>
      <List rows={rows.slice(0, MAX_SKIPPED)}>
        {({ path, reason }) => <><span dir="auto">{path}</span> <span class="muted">{reason}</span></>}
      </List>
      {rows.length > MAX_SKIPPED && <p class="muted">{texts.documents.more(rows.length - MAX_SKIPPED)}</p>}
    </details>
  );
  return <>{list(texts.documents.unread(unread.length), unread)}{list(skipped_summary, skipped)}</>;
}

function Files({ files, onRemoved }: { files: InputFile[]; onRemoved: () => void }) {
  const [search, setSearch] = useState("");
  const [limit, setLimit] = useState(LISTED);
  const typed = search.trim().toLowerCase();
  const found = files.filter(({ path }) => path.toLowerCase().includes(typed));
  // Files with a problem, and those that the next run adds, are what the reader looks for.
  found.sort((a, b) => rank(a) - rank(b));
  if (!files.length) return <p class="muted">{texts.documents.noFiles}</p>;
  return (
    <>
      {files.length > LISTED && <SearchField value={search} onChange={setSearch} label={texts.documents.search} />}
      <ul class="list">
        {found.slice(0, limit).map((file) => <li key={file.path}><FileRow file={file} onRemoved={onRemoved} /></li>)}
      </ul>
      <More left={found.length - limit} onShow={() => setLimit(limit + LISTED)} />
    </>
  );
}

function rank({ problem, n_documents }: InputFile): number {
  return problem ? 0 : n_documents ? 2 : 1;
}

function FileRow({ file, onRemoved }: { file: InputFile; onRemoved: () => void }) {
  const manage = useManagement();
  const [isAsking, setAsking] = useState(false);
  const { act, isBusy, error } = useAction();
  const remove = () => act(async () => {
    await manage.remove(file.path);
    setAsking(false);
    onRemoved();
  });
  const { path, n_documents, problem, size } = file;
  const state = n_documents ? texts.documents.held(n_documents) : problem ? "" : texts.documents.isNew;
  return (
    <div class="file">
      <div class="row">
        <span class="row-name" dir="auto">{path}</span>
        <span class="row-note">
          {[state, texts.documents.size(size)].filter(Boolean).join(" · ")}
        </span>
        <button type="button" class="icon" aria-label={texts.documents.remove(path)}
          title={texts.documents.remove(path)} onClick={() => setAsking(!isAsking)}>
          <span aria-hidden="true">×</span>
        </button>
      </div>
      {problem && <p class="problem">{problem}</p>}
      {isAsking && (
        <div class="failure" role="group" aria-label={texts.documents.remove(path)}>
          <p>{texts.documents.removeExplained(n_documents)}</p>
          <button type="button" disabled={isBusy} onClick={remove}>{texts.documents.delete}</button>{" "}
          <button type="button" onClick={() => setAsking(false)}>{texts.documents.keep}</button>
        </div>
      )}
      {error !== null && <Failure error={error} />}
    </div>
  );
}
