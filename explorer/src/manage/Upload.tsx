/** The upload of documents: files are chosen or dropped, and sent one after the other. */

import { useState } from "preact/hooks";
import { ApiError } from "../api";
import { describeError } from "../ask/conversation";
import { Busy } from "../parts/Loading";
import { texts } from "../texts";
import { useManagement } from "./useManagement";

interface Refused { file: File; error: unknown }

const isTaken = ({ error }: Refused) => error instanceof ApiError && error.code === "file_exists";

export function Upload({ onStored }: { onStored: () => void }) {
  const manage = useManagement();
  const [sending, setSending] = useState("");
  const [nStored, setStored] = useState(0);
  const [refused, setRefused] = useState<Refused[]>([]);
  const [isOver, setOver] = useState(false);
  const send = async (files: File[], replace: boolean) => {
    const failures: Refused[] = [];
    for (const [at, file] of files.entries()) {
      setSending(texts.documents.sending(file.name, at + 1, files.length));
      await manage.upload(file, replace).catch((error: unknown) => failures.push({ file, error }));
    }
    setSending("");
    setRefused(failures);
    setStored(files.length - failures.length);
    onStored();
  };
  const taken = refused.filter(isTaken).map(({ file }) => file);
  return (
    <div class="upload" data-over={isOver}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (!sending) void send([...(event.dataTransfer?.files ?? [])], false);
      }}>
      {sending ? <Busy label={sending} /> : (
        <label class="button">
          {texts.documents.choose}
          <input class="unseen" type="file" multiple onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = "";
            void send(files, false);
          }} />
        </label>
      )}
      <span class="muted">{texts.documents.drop}</span>
      <p class="muted" role="status">{nStored > 0 && !sending && texts.documents.stored(nStored)}</p>
      {taken.length > 0 && (
        <div role="group" aria-label={texts.documents.replace}>
          <p>{texts.documents.taken(taken.map(({ name }) => name))}</p>
          <button type="button" onClick={() => void send(taken, true)}>{texts.documents.replace}</button>{" "}
          <button type="button" onClick={() => setRefused(refused.filter((one) => !isTaken(one)))}>
            {texts.documents.keepOld}
          </button>
        </div>
      )}
      {refused.filter((one) => !isTaken(one)).map(({ file, error }) => (
        <p key={file.name} class="problem" role="alert">{file.name}: {describeError(error)}</p>
      ))}
    </div>
  );
}
