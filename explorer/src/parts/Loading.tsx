/** What stands where a value is being loaded, or could not be loaded. */

import type { ComponentChildren } from "preact";
import { describeError } from "../ask/conversation";
import { texts } from "../texts";
import type { Loaded } from "./useLoaded";

export function Busy({ label = texts.loading }: { label?: string }) {
  return <p class="busy" role="status"><span class="spinner" aria-hidden="true" />{label}</p>;
}

export function Failure({ error, children }: { error: unknown; children?: ComponentChildren }) {
  return <div class="failure" role="alert"><p>{describeError(error)}</p>{children}</div>;
}

/** Draw a value once it is loaded; until then, or after a failure, say so. */
export function Await<T>(
  { loaded, children }: { loaded: Loaded<T>; children: (value: T) => ComponentChildren },
) {
  if (loaded.value !== undefined) return <>{children(loaded.value)}</>;
  if (loaded.error) return <Failure error={loaded.error} />;
  return <Busy />;
}
