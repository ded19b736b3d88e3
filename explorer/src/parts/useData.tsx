/** The index that the page shows, for components: its rows are loaded, actions are run, and failures are told. */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type IndexData, type IndexSummary, isNoServer } from "../api";
import type { Management } from "../manage/management";
import { useProvided } from "../state";
import { texts } from "../texts";

export interface OpenIndex {
  data: IndexData;
  summary: IndexSummary;
  /** The files and runs of the index; absent without a server. */
  manage?: Management;
}

export const DataContext = createContext<OpenIndex | null>(null);

export const useData = () => useProvided(DataContext);

/** Run an effect with a signal that is aborted before the effect runs again, and when the component is gone. */
export function useAbortedEffect(effect: (signal: AbortSignal) => void, inputs: readonly unknown[]): void {
  useEffect(() => {
    const controller = new AbortController();
    effect(controller.signal);
    return () => controller.abort();
  }, inputs);
}

/** How often the server has answered again after it did not. */
export const ServerReturns = createContext(0);

/** Call `retry` when the server is back, if `error` says that it did not answer. */
export function useRetryOnReturn(error: Error | null, retry: () => void): void {
  const returns = useContext(ServerReturns);
  useEffect(() => { if (isNoServer(error)) retry(); }, [returns]);
}

// Time between the end of a look and the next one, in milliseconds.
const PAUSE = 1000;

/** Look again and again while `isOn`, until the component is gone. A look that fails is repeated. */
export function useRepeatedLook(look: (signal: AbortSignal) => Promise<unknown>, isOn = true): void {
  const latest = useRef(look);
  latest.current = look;
  useAbortedEffect((signal) => {
    const wait = () => setTimeout(() => signal.aborted || latest.current(signal).catch(() => {}).then(wait), PAUSE);
    if (isOn) wait();
  }, [isOn]);
}

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
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [attempt, setAttempt] = useState(0);
  const retry = () => setAttempt(attempt + 1);
  const key = JSON.stringify([attempt, ...inputs]);
  const [state, setState] = useState<State<T>>({ key: "", value: undefined, error: null, loading: true });
  useAbortedEffect((signal) => {
    setState({ key, value: undefined, error: null, loading: true });
    load(signal).then(
      (value) => signal.aborted || setState({ key, value, error: null, loading: false }),
      (error: Error) => signal.aborted || setState({ key, value: undefined, error, loading: false }),
    );
  }, [key]);
  useRetryOnReturn(state.error, retry);
  // Between a change of the inputs and the effect, the state is still that of the old inputs.
  return state.key === key
    ? { ...state, retry }
    : { value: undefined, error: null, loading: true, retry };
}

/** Return the management of an index. The panels that need it are not shown without. */
export function useManagement(): Management {
  const { manage } = useData();
  if (!manage) throw new Error("This index cannot be managed.");
  return manage;
}

/** Run one action at a time; keep the error of the last one. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const act = async (action: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await action();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { act, isBusy, error };
}

/** Return an error as a sentence for the reader. */
export function describeError(error: unknown): string {
  return error instanceof ApiError ? error.message : texts.errors.unexpected;
}

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
export function Await<T>({ loaded, children }: { loaded: Loaded<T>; children: (value: T) => ComponentChildren }) {
  if (loaded.value !== undefined) return <>{children(loaded.value)}</>;
  if (loaded.error) return <Failure error={loaded.error} onRetry={loaded.retry} />;
  return <Busy />;
}
