/** The state of the page. All of it is in the hash of the address, so links and "back" work. */

export type Kind = "entity" | "relationship" | "community" | "text_unit" | "document";

/** The thing whose details are shown. A community and its report have the same number. */
export interface Selection {
  kind: Kind;
  number: number;
  /** The marked span of a document. It counts Unicode code points; its end is exclusive. */
  span?: { start: number; end: number };
}

export interface Filters {
  /** Patterns like those for file names, by column of documents or key of metadata. */
  documents: Record<string, string[]>;
  types: string[];
  since: string;
  until: string;
}

export type GraphMode = "graph" | "table";
/** What decides the colours of entities. */
export type ColourBy = "community" | "type";

export interface Address {
  index: string;
  selection: Selection | null;
  /** The panel on the left: "ask", "browse", or one of the menu. */
  panel: string;
  question: string;
  method: string;
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
  /** The only community that the graph shows. */
  only: number | null;
  mode: GraphMode;
  colourBy: ColourBy;
}

export const NO_FILTERS: Filters = { documents: {}, types: [], since: "", until: "" };

export const EMPTY_ADDRESS: Address = {
  index: "", selection: null, panel: "ask", question: "", method: "ask", search: "",
  table: "entities", filters: NO_FILTERS, version: null, compare: null, path: null, only: null, mode: "graph",
  colourBy: "community",
};

const KINDS: readonly string[] = ["entity", "relationship", "community", "text_unit", "document"];
// Keys of the parameters that are one text each, with the value that is left out.
const TEXTS = ["panel", "question", "method", "search", "table"] as const;

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
  address.version = wholeNumber(parameters.get("version"));
  address.compare = wholeNumber(parameters.get("compare"));
  address.only = wholeNumber(parameters.get("only"));
  const [, from, to] = /^(\d+)-(\d+)$/.exec(parameters.get("path") ?? "") ?? [];
  address.path = from && to ? { from: Number(from), to: Number(to) } : null;
  address.mode = parameters.get("mode") === "table" ? "table" : "graph";
  address.colourBy = parameters.get("colour") === "type" ? "type" : "community";
  return address;
}

/** Write an address as a hash; values that are the default are left out. */
export function formatAddress(address: Address): string {
  const { filters, path } = address;
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
  if (address.version !== null) parameters.set("version", String(address.version));
  if (address.compare !== null) parameters.set("compare", String(address.compare));
  if (address.only !== null) parameters.set("only", String(address.only));
  if (path) parameters.set("path", `${path.from}-${path.to}`);
  if (address.mode === "table") parameters.set("mode", "table");
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

function formatSelection(selection: Selection | null): string[] {
  if (!selection) return [];
  const { kind, number, span } = selection;
  return [kind, String(number), ...(span ? [`${span.start}-${span.end}`] : [])];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function wholeNumber(text: string | null): number | null {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
