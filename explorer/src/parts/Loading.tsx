/** What stands where a value is being loaded, or could not be loaded. */

import type { ComponentChildren } from "preact";
import { ApiError } from "../api";
import { describeError } from "../ask/conversation";
import { texts } from "../texts";
import type { Loaded } from "./useLoaded";

export function Busy({ label = texts.loading }: { label?: string }) {
  return <p class="busy" role="status"><span class="spinner" aria-hidden="true" />{label}</p>;
}

interface FailureProps { error: unknown; onRetry?: (() => void) | undefined }

/** A failure as a sentence, with a button if the same request may succeed later. */
export function Failure({ error, onRetry }: FailureProps) {
  const { status = 0 } = error instanceof ApiError ? error : {};
  const mayPass = status === 0 || status === 429 || status >= 500;
  return (
    <div class="failure" role="alert">
      <p>{describeError(error)}</p>
      {onRetry && mayPass && <button type="button" onClick={onRetry}>{texts.retry}</button>}
    </div>
  );
}

/** Draw a value once it is loaded; until then, or after a failure, say so. */
export function Await<T>(
  { loaded, children }: { loaded: Loaded<T>; children: (value: T) => ComponentChildren },
) {
  if (loaded.value !== undefined) return <>{children(loaded.value)}</>;
  if (loaded.error) return <Failure error={loaded.error} onRetry={loaded.retry} />;
  return <Busy />;
}
