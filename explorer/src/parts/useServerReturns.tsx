/** The return of a server that did not answer: what could not be loaded is then loaded again. */

import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { isNoServer } from "../api";

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
  useEffect(() => {
    if (!isOn) return;
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout>;
    const wait = () => {
      if (!signal.aborted) timer = setTimeout(() => latest.current(signal).catch(() => {}).then(wait), PAUSE);
    };
    wait();
    return () => { clearTimeout(timer); controller.abort(); };
  }, [isOn]);
}
