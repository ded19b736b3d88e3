/** Loading values: a hook that loads, reloads when its inputs change, and cancels. */

import { useEffect, useState } from "preact/hooks";
import { useRetryOnReturn } from "./useServerReturns";

export interface Loaded<T> {
  /** The last value that was loaded for these inputs; undefined before. */
  value: T | undefined;
  error: Error | null;
  loading: boolean;
  /** Load again after a failure. */
  retry: () => void;
}

type State<T> = Omit<Loaded<T>, "retry"> & { key: string };

/** Load a value again whenever `inputs` change. A load that is no longer wanted is aborted. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[],
): Loaded<T> {
  const [attempt, setAttempt] = useState(0);
  const retry = () => setAttempt(attempt + 1);
  const key = JSON.stringify([attempt, ...inputs]);
  const [state, setState] = useState<State<T>>({ key: "", value: undefined, error: null, loading: true });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setState({ key, value: undefined, error: null, loading: true });
    load(signal).then(
      (value) => signal.aborted || setState({ key, value, error: null, loading: false }),
      (error: Error) => signal.aborted || setState({ key, value: undefined, error, loading: false }),
    );
    return () => controller.abort();
  }, [key]);
  useRetryOnReturn(state.error, retry);
  // Between a change of the inputs and the effect, the state is still that of the old inputs.
  return state.key === key
    ? { ...state, retry }
    : { value: undefined, error: null, loading: true, retry };
}
