/** The management of the index, and actions on it, for components. */

import { useState } from "preact/hooks";
import { useData } from "../parts/useData";
import type { Management } from "./management";

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
