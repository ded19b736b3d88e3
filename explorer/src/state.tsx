/**
 * The state of the page. What the reader has chosen is in the hash of the address, so links and "back" work;
 * what is lit belongs to the part of the page that lights it, and ends with that part.
 */

import { type ComponentChildren, type Context, createContext } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { attempt } from "./session";

export type Kind = "entity" | "relationship" | "community" | "text_unit" | "document";

/** The thing whose details are shown. A community and its report have the same number. */
export interface Selection {
  kind: Kind;
  number: number;
  /** The marked span of a document. It counts Unicode code points; its end is exclusive. */
  span?: { start: number; end: number };
}

/** Return whether the graph draws what is selected. */
export const isInGraph = (selection: Selection | null) => Boolean(selection && !["text_unit", "document"].includes(selection.kind));

export interface Filters {
  /** Patterns like those for file names, by column of documents or key of metadata. */
  documents: Record<string, string[]>;
  types: string[];
  since: string;
  until: string;
}

/** One thing with what is near it, which the graph shows in place of the map. */
export interface Surroundings {
  /** An entity with its neighbours, or a passage with the entities that it names. */
  kind: "entity" | "text_unit";
  number: number;
  /** Entities that are always shown, and those that are never shown. */
  pinned: number[];
  hidden: number[];
  /** Types of which all entities are shown, and those of which none is. */
  expanded: string[];
  collapsed: string[];
}

/** What the middle of the page shows. */
export const MODES = ["graph", "table", "documents", "console"] as const;
export type Mode = (typeof MODES)[number];
/** What decides the colours of entities. */
export type ColourBy = "community" | "type";

export interface Address {
  index: string;
  selection: Selection | null;
  /** The panel on the left: "ask", "browse", or one of the menu. */
  panel: string;
  question: string;
  method: string;
  /** The kept conversation, or one that a link carries; empty for a new one. */
  conversation: string;
  /** The columns that answer a question side by side; none: the graph is shown. */
  beside: string[];
  /** The text that lists are searched for. */
  search: string;
  table: string;
  filters: Filters;
  /** An earlier version of the index; null for the current version. */
  version: number | null;
  /** The version, earlier or later, that the shown one is compared with; null: none. */
  compare: number | null;
  /** Two entities whose shortest connection is shown. */
  path: { from: number; to: number } | null;
  around: Surroundings | null;
  /** The only community that the graph shows. */
  only: number | null;
  mode: Mode;
  /** The query of the console, and its language. */
  query: string;
  language: string;
  colourBy: ColourBy;
}

export const NO_FILTERS: Filters = { documents: {}, types: [], since: "", until: "" };

export const EMPTY_ADDRESS: Address = {
  index: "", selection: null, panel: "ask", question: "", method: "ask", search: "", conversation: "", beside: [],
  table: "entities", filters: NO_FILTERS, version: null, compare: null, path: null, around: null,
  only: null, mode: "graph", query: "", language: "sql", colourBy: "community",
};

/** Return the surroundings of a thing as they are shown first. */
export function surround(kind: Surroundings["kind"], number: number, pinned: number[] = []): Surroundings {
  return { kind, number, pinned, hidden: [], expanded: [], collapsed: [] };
}

/** Return the address after a change: what belongs to something else ends with it, unless the change sets it too. */
export function changeAddress(address: Address, change: Partial<Address>): Address {
  const isNew = (key: keyof Address) => key in change && change[key] !== address[key];
  // Rows have other numbers in another version.
  const numbered = { selection: null, path: null, around: null, only: null, compare: null };
  return {
    ...address,
    ...(isNew("index") || isNew("version") ? numbered : {}),
    ...(isNew("panel") || isNew("table") ? { search: "" } : {}),
    // The graph shows the newest of these in place of the whole map.
    ...(change.path || change.compare || isNew("only") ? { around: null } : {}),
    ...(change.compare || isNew("only") ? { path: null } : {}),
    ...change,
  };
}

const KINDS: readonly string[] = ["entity", "relationship", "community", "text_unit", "document"];
// Keys of the parameters that are one text each, with the value that is left out.
const TEXTS = ["panel", "question", "method", "search", "table", "conversation", "query", "language"] as const;
const NUMBERS = ["version", "compare", "only"] as const;
// Keys of the parts of surroundings: lists of numbers, and types of entities.
const LISTS = ["pinned", "hidden"] as const;
const TYPES = ["expanded", "collapsed"] as const;

export function hasFilters({ documents, types, since, until }: Filters): boolean {
  return Boolean(types.length || since || until || Object.keys(documents).length);
}

/**
 * Parse the hash of an address. Invalid parts are ignored: people edit addresses by hand. So is what other programs
 * put behind an address to find a text in a page, such as `#:~:text=`: our own parts have `#` and `:` encoded.
 */
export function parseAddress(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").replace(/(#|:~:).*/s, "").split(/\?(.*)/s);
  const [index = "", kind = "", ...rest] = path.split("/").map(decode);
  const parameters = new URLSearchParams(query);
  const address: Address = { ...EMPTY_ADDRESS, index, selection: parseSelection(kind, rest) };
  for (const key of TEXTS) address[key] = parameters.get(key) ?? EMPTY_ADDRESS[key];
  const documents: Record<string, string[]> = {};
  for (const condition of parameters.getAll("where")) {
    const [, column, pattern] = /^([^=]+)=(.+)$/s.exec(condition) ?? [];
    if (column && pattern) (documents[column] ??= []).push(pattern);
  }
  address.filters = {
    documents, types: parameters.getAll("type"),
    since: parameters.get("since") ?? "", until: parameters.get("until") ?? "",
  };
  for (const key of NUMBERS) address[key] = wholeNumber(parameters.get(key));
  address.beside = parameters.getAll("beside");
  const [, from, to] = /^(\d+)-(\d+)$/.exec(parameters.get("path") ?? "") ?? [];
  address.path = from && to ? { from: Number(from), to: Number(to) } : null;
  address.around = parseSurroundings(parameters);
  address.mode = MODES.find((mode) => mode === parameters.get("mode")) ?? "graph";
  address.colourBy = parameters.get("colour") === "type" ? "type" : "community";
  return address;
}

/** Write an address as a hash; values that are the default are left out. */
export function formatAddress(address: Address): string {
  const { around, filters, path } = address;
  const parameters = new URLSearchParams();
  for (const key of TEXTS) {
    if (address[key] !== EMPTY_ADDRESS[key]) parameters.set(key, address[key]);
  }
  for (const [column, patterns] of Object.entries(filters.documents)) {
    for (const pattern of patterns) parameters.append("where", `${column}=${pattern}`);
  }
  for (const type of filters.types) parameters.append("type", type);
  if (filters.since) parameters.set("since", filters.since);
  if (filters.until) parameters.set("until", filters.until);
  for (const key of NUMBERS) if (address[key] !== null) parameters.set(key, String(address[key]));
  for (const column of address.beside) parameters.append("beside", column);
  if (path) parameters.set("path", `${path.from}-${path.to}`);
  if (around) {
    parameters.set("around", `${around.kind}-${around.number}`);
    for (const key of LISTS) if (around[key].length) parameters.set(key, around[key].join("-"));
    for (const key of TYPES) for (const type of around[key]) parameters.append(key, type);
  }
  if (address.mode !== "graph") parameters.set("mode", address.mode);
  if (address.colourBy === "type") parameters.set("colour", "type");
  const parts = [address.index, ...formatSelection(address.selection)].map(encodeURIComponent);
  const query = parameters.toString();
  return `#/${parts.join("/")}${query && `?${query}`}`;
}

function parseSelection(kind: string, [name = "", span = ""]: string[]): Selection | null {
  const number = wholeNumber(name);
  if (!KINDS.includes(kind) || number === null) return null;
  const [, start, end] = /^(\d+)-(\d+)$/.exec(span) ?? [];
  const selection = { kind: kind as Kind, number };
  return start && end ? { ...selection, span: { start: Number(start), end: Number(end) } } : selection;
}

function parseSurroundings(parameters: URLSearchParams): Surroundings | null {
  const [, kind, number] = /^(entity|text_unit)-(\d{1,15})$/.exec(parameters.get("around") ?? "") ?? [];
  if (!kind) return null;
  const around = surround(kind as Surroundings["kind"], Number(number));
  for (const key of LISTS) around[key] = (parameters.get(key)?.match(/\d+/g) ?? []).map(Number);
  for (const key of TYPES) around[key] = parameters.getAll(key);
  return around;
}

function formatSelection(selection: Selection | null): string[] {
  if (!selection) return [];
  const { kind, number, span } = selection;
  return [kind, String(number), ...(span ? [`${span.start}-${span.end}`] : [])];
}

const decode = (text: string) => attempt(() => decodeURIComponent(text)) ?? text;

function wholeNumber(text: string | null): number | null {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

export interface AddressStore {
  address: Address;
  /** Change a part of the address. With `replace`, "back" skips the present address. */
  go(change: Partial<Address>, replace?: boolean): void;
  /** Return the hash of the present address with a change, for links. */
  href(change: Partial<Address>): string;
  select(selection: Selection): string;
}

export const AddressContext = createContext<AddressStore | null>(null);

function AddressProvider({ children }: { children: ComponentChildren }) {
  const [address, setAddress] = useState(() => parseAddress(location.hash));
  useEffect(() => {
    const follow = () => setAddress(parseAddress(location.hash));
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  const store = useMemo<AddressStore>(() => {
    const href = (change: Partial<Address>) => formatAddress(changeAddress(address, change));
    const go = (change: Partial<Address>, replace = false) => {
      // Two changes in one event must not lose the first: start from the address itself.
      const hash = formatAddress(changeAddress(parseAddress(location.hash), change));
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
  // A frame without an address of its own, inside a chat, has no history.
  if (!attempt(() => { history.replaceState(null, "", hash); return true; })) location.hash = hash;
}

/** Return what a part of the page around this one provides. */
export function useProvided<T>(context: Context<T | null>): T {
  const provided = useContext(context);
  if (!provided) throw new Error("A part of the page stands outside of what provides its state or its index.");
  return provided;
}

export const useAddress = () => useProvided(AddressContext);

/** Numbers of rows that are lit in the graph and in the panels. */
export interface Highlight {
  entities: readonly number[];
  relationships: readonly number[];
  communities: readonly number[];
  /** What filters light: a sentence if that is a part of what they keep, or else an empty one. */
  filtered?: string;
}

export const NO_HIGHLIGHT: Highlight = { entities: [], relationships: [], communities: [] };

export const isEmptyHighlight = ({ entities, relationships, communities }: Highlight) =>
  !entities.length && !relationships.length && !communities.length;

/** Something lit, and the part of the page that lights it. */
interface Lit { owner: unknown; highlight: Highlight }

interface HighlightStore {
  /** What is lit while the reader points at something; null if at nothing. */
  pointed: Highlight | null;
  /** What is lit for as long as the part of the page that it belongs to is there. */
  kept: Highlight;
  light(where: "pointed" | "kept", lit: Lit): void;
  /** End what an owner lights; without an owner, what anyone does. */
  end(where: "pointed" | "kept", owner?: unknown): void;
}

const HighlightContext = createContext<HighlightStore | null>(null);

function HighlightProvider({ children }: { children: ComponentChildren }) {
  // The newest is the last: what lies inside something that is pointed at is lit until the pointer leaves it.
  const [lit, setLit] = useState<Record<"pointed" | "kept", readonly Lit[]>>({ pointed: [], kept: [] });
  const store = useMemo<HighlightStore>(() => {
    const withoutOwner = (all: readonly Lit[], owner: unknown) => all.filter((one) => owner && one.owner !== owner);
    return {
      pointed: lit.pointed.at(-1)?.highlight ?? null,
      kept: lit.kept.at(-1)?.highlight ?? NO_HIGHLIGHT,
      light: (where, found) => setLit((before) => (
        { ...before, [where]: [...withoutOwner(before[where], found.owner), found] }
      )),
      end: (where, owner) => setLit((before) => (
        before[where].length ? { ...before, [where]: withoutOwner(before[where], owner) } : before
      )),
    };
  }, [lit]);
  return <HighlightContext.Provider value={store}>{children}</HighlightContext.Provider>;
}

export const useHighlight = () => useProvided(HighlightContext);

/** Return a function that lights what the reader points at; null ends it, and so does the end of the component. */
export function usePointing(): (highlight: Highlight | null) => void {
  const { light, end } = useHighlight();
  const owner = useRef(null);
  useEffect(() => () => end("pointed", owner), []);
  return (highlight) => (highlight ? light("pointed", { owner, highlight }) : end("pointed", owner));
}

/** Return properties for an element that lights rows while it is pointed at or focused. */
export function useLighting(highlight: Partial<Highlight>) {
  const point = usePointing();
  const start = () => point({ ...NO_HIGHLIGHT, ...highlight });
  const stop = () => point(null);
  return { onPointerEnter: start, onPointerLeave: stop, onFocusIn: start, onFocusOut: stop };
}

/** Light rows for as long as the component is there, unless the reader ends it; null: nothing yet. */
export function useKeeping(highlight: Highlight | null): void {
  const { light, end } = useHighlight();
  const owner = useRef(null);
  useEffect(() => {
    if (highlight) light("kept", { owner, highlight });
    return () => end("kept", owner);
  }, [highlight]);
}

/** The state for all parts of the page. */
export function StateProvider({ children }: { children: ComponentChildren }) {
  return <AddressProvider><HighlightProvider>{children}</HighlightProvider></AddressProvider>;
}
