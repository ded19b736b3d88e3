/** The upload of documents: files are chosen or dropped, and sent one after the other. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError, isNoServer } from "../api";
import { useObserved } from "../parts/Observed";
import { describeError, useManagement } from "../parts/useData";
import { texts } from "../texts";
import type { InputFiles } from "./rows";
import type { Refused, Sending, UploadQueue } from "./UploadQueue";

/** Return the files on their way, and draw again when they change. */
export function useUploads(): UploadQueue {
  const { uploads } = useManagement();
  useObserved([uploads]);
  return uploads;
}

interface DropAreaProps { limits: InputFiles | undefined; children: ComponentChildren }

/** The area in which files are dropped: the whole panel, since a drop beside it would leave the page. */
export function DropArea({ limits, children }: DropAreaProps) {
  const uploads = useUploads();
  const [isOver, setOver] = useState(false);
  return (
    <div class="panel-body drop-area" data-over={isOver} onDragOver={(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        send(uploads, [...(event.dataTransfer?.files ?? [])], limits);
      }}>
      {children}
    </div>
  );
}

const send = (uploads: UploadQueue, files: File[], limits: InputFiles | undefined, replace = false) =>
  void uploads.add(files, replace, (file) => checkFile(file, limits));

/** Return why the server would refuse a file, before any of its bytes are sent; empty if it may take it. */
function checkFile({ size }: File, limits: InputFiles | undefined): string {
  return limits && size > limits.max_bytes ? texts.documents.tooLarge(size, limits.max_bytes) : "";
}

const isTaken = ({ error }: Refused) => error instanceof ApiError && error.code === "file_exists";

export function Upload({ limits }: { limits: InputFiles | undefined }) {
  const uploads = useUploads();
  const { sending, refused, nStored, nCancelled } = uploads;
  const taken = refused.filter(isTaken);
  const lost = sending ? [] : refused.filter(({ error }) => isNoServer(error));
  const outcome = sending ? "" : texts.documents.outcome(nStored, nCancelled);
  return (
    <div class="upload">
      <label class="button">
        {texts.documents.choose}
        <input class="unseen" type="file" multiple onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          send(uploads, files, limits);
        }} />
      </label>
      <span class="muted">{texts.documents.drop}</span>
      {sending && <Progress sending={sending} onCancel={() => uploads.cancel()} />}
      <p class="muted" role="status">{outcome}</p>
      {taken.length > 0 && (
        <div role="group" aria-label={texts.documents.replace}>
          <p>{texts.documents.taken(taken.map(({ file }) => file.name))}</p>
          <button type="button" onClick={() => {
            uploads.forget(taken);
            send(uploads, taken.map(({ file }) => file), limits, true);
          }}>
            {texts.documents.replace}
          </button>{" "}
          <button type="button" onClick={() => uploads.forget(taken)}>{texts.documents.keepOld}</button>
        </div>
      )}
      {lost.length > 0 && (
        <button type="button" onClick={() => send(uploads, lost.map(({ file }) => file), limits)}>
          {texts.documents.sendAgain(lost.length)}
        </button>
      )}
      {refused.filter((one) => !isTaken(one)).map(({ file, error }) => (
        <p key={file.name} class="problem" role="alert">{nameError(file, error)}</p>
      ))}
    </div>
  );
}

/** Return an error with the name of its file, which some errors have already. */
function nameError({ name }: File, error: unknown): string {
  const sentence = typeof error === "string" ? error : describeError(error);
  return sentence.includes(name) ? sentence : `${name}: ${sentence}`;
}

function Progress({ sending, onCancel }: { sending: Sending; onCancel: () => void }) {
  const { name, sent, size, nWaiting } = sending;
  const isSent = sent >= size;
  return (
    <div class="sending">
      <p role="status">
        {isSent ? texts.documents.checking(name) : texts.documents.sending(name)}
        {nWaiting > 0 && ` · ${texts.documents.waiting(nWaiting)}`}
      </p>
      {/* Without a value, the bar says that the time of the check is unknown. */}
      <progress aria-label={texts.documents.sending(name)} max={size || 1} {...(isSent ? {} : { value: sent })} />
      <p class="muted">{texts.documents.sent(sent, size)}</p>
      <button type="button" onClick={onCancel}>{texts.documents.cancel}</button>
    </div>
  );
}
