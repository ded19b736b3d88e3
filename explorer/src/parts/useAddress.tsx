/** The address as a value that components read, change, and link to. */

import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { useData } from "./useData";
import { type Address, formatAddress, parseAddress, type Selection } from "../state";

export interface AddressStore {
  address: Address;
  /** Change a part of the address. With `replace`, "back" skips the present address. */
  go(change: Partial<Address>, replace?: boolean): void;
  /** Return the hash of the present address with a change, for links. */
  href(change: Partial<Address>): string;
  select(selection: Selection): string;
}

const AddressContext = createContext<AddressStore | null>(null);

export function AddressProvider({ children }: { children: ComponentChildren }) {
  const [address, setAddress] = useState(() => parseAddress(location.hash));
  useEffect(() => {
    const follow = () => setAddress(parseAddress(location.hash));
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  const store = useMemo<AddressStore>(() => {
    const href = (change: Partial<Address>) => formatAddress({ ...address, ...change });
    const go = (change: Partial<Address>, replace = false) => {
      // Two changes in one event must not lose the first: start from the address itself.
      const hash = formatAddress({ ...parseAddress(location.hash), ...change });
      if (!replace) location.hash = hash;
      else if (hash !== location.hash) {
        replaceHash(hash);
        setAddress(parseAddress(hash));
      }
    };
    return { address, go, href, select: (selection) => href({ selection }) };
  }, [address]);
  return <AddressContext.Provider value={store}>{children}</AddressContext.Provider>;
}

function replaceHash(hash: string): void {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // A frame without an address of its own, inside a chat, has no history.
    location.hash = hash;
  }
}

/** Make the links inside open a version of the index, whichever version the page shows. */
export function AtVersion({ version, children }: { version: number; children: ComponentChildren }) {
  const store = useAddress();
  const { summary } = useData();
  const shown = store.address.version ?? summary.version;
  const linking = useMemo<AddressStore>(() => {
    if (version === shown || !version) return store;
    // Rows have other numbers in another version, so nothing else stays selected.
    const change = { version: version === summary.version ? null : version, path: null, only: null, compare: null };
    const href = (wanted: Partial<Address>) => store.href({ ...change, ...wanted });
    return { ...store, href, select: (selection) => href({ selection }) };
  }, [store, version, shown]);
  return <AddressContext.Provider value={linking}>{children}</AddressContext.Provider>;
}

export function useAddress(): AddressStore {
  const store = useContext(AddressContext);
  if (!store) throw new Error("useAddress needs an AddressProvider.");
  return store;
}
