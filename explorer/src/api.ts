/** The data of an index: one interface, and its implementation over the HTTP API. */

import { Management } from "./manage/management";
import { readEvents } from "./parts/readEvents";
import { type MapPart, parseMapPart, type Place, ROOT } from "./graph/mapPart";
import type { Filters } from "./state";
import { texts } from "./texts";

export type Scope = "read" | "ask" | "index" | "admin";

export interface IndexSummary {
  name: string;
  version: number;
  workflow: string;
  tables: Record<string, number>;
  methods: string[];
  /** What the reader's key allows. */
  scopes: Scope[];
  /** The reason why the index cannot be opened; empty if it can, or has not been built yet. */
  problem?: string;
}

// Rows of the index. Numbers are those of one version; documents and passages count code points.

export interface Entity {
  number: number; title: string; type: string; description: string;
  degree: number; frequency: number; aliases: string[];
}
export interface Relationship {
  number: number; source: number; target: number; source_title: string; target_title: string;
  type: string; description: string; weight: number;
  /** False if both ends were only counted together in the same passages. */
  stated: boolean;
}
export interface Community {
  community: number; level: number; parent: number; children: number[]; title: string; size: number;
}
export interface Report {
  community: number; level: number; title: string; summary: string; full_content: string;
  rank: number; size: number;
}
export interface Document {
  /** Absent on a static page. */
  id?: string;
  number: number; title: string; path: string; creation_date: string; language: string;
  metadata: string | null; n_characters: number; n_text_units: number;
}
export interface TextUnit {
  number: number; document: number; document_title: string; start_char: number; end_char: number;
  headings: string; text: string;
}
/** A passage that supports a row. */
export interface Span {
  document: number; title: string; start_char: number; end_char: number; text: string;
  text_unit: number | null;
}
export interface EntityDetails extends Entity {
  communities: Omit<Community, "parent" | "children">[];
  evidence: Span[];
}
export interface RelationshipDetails extends Relationship { evidence: Span[]; text_units: number[] }
export interface CommunityDetails extends Community {
  ancestors: Community[]; child_communities: Community[];
  neighbours: (Community & { weight: number })[];
  has_report: boolean;
}
export interface TextUnitDetails extends TextUnit { entities: Entity[] }
export interface DocumentText {
  text: string; start_char: number; end_char: number; n_characters: number;
  text_units: { number: number; start_char: number; end_char: number }[];
  mentions: { entity: number; title: string; start_char: number; end_char: number }[];
}
export interface Page<Row> { items: Row[]; next_cursor: string | null; total: number | null }
export interface Rows {
  entities: Entity; relationships: Relationship; communities: Community; documents: Document;
  text_units: TextUnit;
}
export type TableName = keyof Rows;
export interface Details {
  entities: EntityDetails; relationships: RelationshipDetails; communities: CommunityDetails;
  documents: Document; text_units: TextUnitDetails; reports: Report;
}
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export interface Version {
  number: number; is_current: boolean; workflow: string; date: string; calls: number;
  cost: number | null;
}
export const CHANGED_TABLES = ["documents", "entities", "relationships", "communities", "reports"] as const;
export type ChangedTable = (typeof CHANGED_TABLES)[number];
/** A row that differs between two versions, with its number in each version that has it. */
export interface ChangedRow {
  kind: "added" | "removed" | "changed" | "renamed"; name: string; before: number | null; after: number | null;
}
export interface ChangedRows extends Page<ChangedRow> { counts: Record<string, number> }
export interface Suggestions {
  entities: Entity[]; communities: Community[]; text_units: TextUnit[];
}
export interface Paths {
  paths: { entities: number[]; relationships: number[]; cost: number }[];
  entities: Entity[];
  relationships: Relationship[];
}
/** What filters can be set to. */
export interface FilterChoices { entity_types: Record<string, number>; document_columns: string[] }

/** The part of the graph that a path or a neighbourhood consists of, as searches return it. */
export interface AnswerGraph {
  entities: { human_readable_id: number; title: string }[];
  relationships: { human_readable_id: number; source: string; target: string }[];
}
export interface Citation {
  number: number; document: string; document_id: string; path: string; start_char: number;
  end_char: number; quote: string; text_unit: number; cited_as: string;
}
export interface Usage {
  calls: number; prompt_tokens: number; completion_tokens: number; cost: number | null;
  seconds: number;
}
export type ContextRow = Record<string, unknown> & { id?: number };
/** A report that a search compared with the question. */
export interface RatedReport { community: number; title: string; score: number }
/** A question that a search asked on its way. Without a score it only looked for passages. */
export interface SubQuestion { question: string; answer: string; score: number | null }
export interface Answer {
  answer: string; question: string; method: string; version: number;
  outcome: "answered" | "no_evidence" | "provider_error" | "index_incomplete";
  citations: Citation[];
  parameters: Record<string, unknown>;
  looked_at: Record<string, number>;
  usage: Usage;
  notes: string[];
  follow_ups: string[];
  left_out: number[];
  suggestion: { method: string; arguments: string[]; why: string; command: string } | null;
  table: Record<string, unknown>[];
  /** The rows of the prompt by section; the server calls them `context` or `context_rows`. */
  context_rows?: Record<string, ContextRow[]> | null;
  context?: Record<string, ContextRow[]> | null;
  graph?: AnswerGraph | null;
  reports?: RatedReport[];
  sub_questions?: SubQuestion[];
  request_id?: string;
  trace_id?: string | null;
}
export interface Question {
  question: string; method: string; names?: string[]; filters: Filters; version: number | null;
  conversation: { question: string; answer: string; asked?: string }[];
}
/** What a question reports while it is answered. */
export interface AnswerListener {
  onStatus(message: string): void;
  onText(text: string): void;
  /** The text so far is withdrawn: the model starts again. */
  onRestart(): void;
}

/** A failure that is shown to the reader; `status` is 0 if there was no reply. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

const noServer = () => new ApiError(0, "no_server", texts.errors.noServer);
/** Return whether an error says that no server answered. */
export const isNoServer = (error: unknown) => error instanceof ApiError && error.code === "no_server";

/** The data of one index at one version. */
export interface IndexData {
  page<T extends TableName>(table: T, query: Query, signal: AbortSignal): Promise<Page<Rows[T]>>;
  row<T extends keyof Details>(table: T, number: number, signal: AbortSignal): Promise<Details[T]>;
  relationshipsOf(
    entity: number, cursor: string | null, signal: AbortSignal,
  ): Promise<Page<Relationship>>;
  mentionsOf(entity: number, cursor: string | null, signal: AbortSignal): Promise<Page<Span>>;
  documentText(
    document: number, start: number, end: number, signal: AbortSignal,
  ): Promise<DocumentText>;
  suggest(text: string, query: Query, signal: AbortSignal): Promise<Suggestions>;
  paths(from: number, to: number, signal: AbortSignal): Promise<Paths>;
  /** Read the part of the map inside a community, or the coarsest level for ROOT. */
  mapPart(community: number, signal: AbortSignal): Promise<MapPart>;
  /** Return the places of rows; the ends of the relationships are among the entities. */
  places(
    entities: readonly number[], communities: readonly number[], relationships: readonly number[],
    signal: AbortSignal,
  ): Promise<{ entities: Place[]; communities: Place[]; relationships: Relationship[] }>;
  versions(signal: AbortSignal): Promise<Version[]>;
  filterChoices(signal: AbortSignal): Promise<FilterChoices>;
  /** Read the rows that differ between two versions. Absent where only one version can be read. */
  changedRows?(table: ChangedTable, query: Query, signal: AbortSignal): Promise<ChangedRows>;
  /** Open another version of the index. Absent where only one version can be read. */
  atVersion?(version: number): IndexData;
  /** Absent where nothing can be asked: on a static page. */
  ask?(question: Question, listener: AnswerListener, signal: AbortSignal): Promise<Answer>;
  /** Return whether an index without rows has been built since. */
  isBuilt?(signal: AbortSignal): Promise<boolean>;
  /** The files and runs of the index; absent without a server. */
  readonly manage?: Management;
}

// Codes of errors of an index that cannot be opened.
const UNREADABLE: readonly string[] = ["no_index_yet", "table_error"];

/** The calls of the HTTP API with the reader's key. */
export class Connection {
  /** Called when the server wants a key, or another key. */
  onUnauthorized: () => void = () => {};
  /** Called with the version of each reply that is not of an earlier version. */
  onVersion: (version: number) => void = () => {};
  /** Called after each request with whether the server answered. */
  onReach: (isReached: boolean) => void = () => {};
  /** Called when an index cannot be read, because it is damaged or gone. */
  onUnreadable: () => void = () => {};

  constructor(private readonly base: string, private readonly key: () => string) {}

  async fetch(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = new Headers(options.headers);
    if (this.key()) headers.set("Authorization", `Bearer ${this.key()}`);
    return this.accept(path, await this.reach(fetch(this.base + path, { ...options, headers })));
  }

  /** Wait for the network. Its failures, which are of this type, become an error for the reader. */
  private async reach<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.onReach(false);
      throw noServer();
    }
  }

  /** Return a reply without an error. Throws ApiError. */
  private async accept(path: string, response: Response): Promise<Response> {
    const version = Number(response.headers.get("X-Index-Version"));
    if (version && !path.includes("as_of=")) this.onVersion(version);
    const problem = response.ok ? null : await readProblem(response);
    this.onReach(!isNoServer(problem));
    if (!problem) return response;
    if (problem.status === 401) this.onUnauthorized();
    if (UNREADABLE.includes(problem.code)) this.onUnreadable();
    throw problem;
  }

  /** Send a form, and report how many bytes of its body are sent; `fetch` cannot tell that. */
  async upload(
    path: string, body: FormData, onProgress: (sent: number) => void, signal: AbortSignal,
  ): Promise<Response> {
    const response = new Promise<Response>((resolve, reject) => {
      const request = new XMLHttpRequest();
      const abort = () => { request.abort(); reject(signal.reason as Error); };
      request.upload.onprogress = ({ loaded }) => onProgress(loaded);
      request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
      // The type of error that `fetch` has for the network.
      request.onerror = () => reject(new TypeError("The connection failed."));
      request.onloadend = () => signal.removeEventListener("abort", abort);
      signal.addEventListener("abort", abort);
      request.open("POST", this.base + path);
      if (this.key()) request.setRequestHeader("Authorization", `Bearer ${this.key()}`);
      request.send(body);
    });
    return this.accept(path, await this.reach(response));
  }

  /** Find out whether the server still answers. */
  async look(signal?: AbortSignal): Promise<void> {
    await this.fetch("health", { signal: signal ?? null });
  }

  async get<T>(path: string, query: Query, signal: AbortSignal): Promise<T> {
    const response = await this.fetch(path + formatQuery(query), { signal });
    return this.reach(response.json() as Promise<T>);
  }

  async send<T>(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    const text = JSON.stringify(body);
    const response = await this.fetch(path, { method, headers, body: text, signal: signal ?? null });
    return this.reach(response.json() as Promise<T>);
  }

  async indexes(signal: AbortSignal): Promise<IndexSummary[]> {
    return (await this.get<{ indexes: IndexSummary[] }>("v1/indexes", {}, signal)).indexes;
  }

  open(name: string, version: number | null): ServedIndex {
    return new ServedIndex(this, name, version);
  }
}

/** An index of a server. */
export class ServedIndex implements IndexData {
  readonly manage: Management;
  private readonly root: string;

  constructor(
    readonly connection: Connection, readonly name: string, readonly version: number | null,
  ) {
    this.root = `v1/indexes/${encodeURIComponent(name)}`;
    this.manage = new Management(connection, this.root);
  }

  get<T>(path: string, query: Query, signal: AbortSignal): Promise<T> {
    return this.connection.get(`${this.root}${path}`, { ...query, as_of: this.version }, signal);
  }

  page<T extends TableName>(table: T, query: Query, signal: AbortSignal) {
    return this.get<Page<Rows[T]>>(`/${table}`, query, signal);
  }

  row<T extends keyof Details>(table: T, number: number, signal: AbortSignal) {
    return this.get<Details[T]>(`/${table}/${number}`, {}, signal);
  }

  relationshipsOf(entity: number, cursor: string | null, signal: AbortSignal) {
    return this.linked<Relationship>(`/entities/${entity}/relationships`, 25, cursor, signal);
  }

  mentionsOf(entity: number, cursor: string | null, signal: AbortSignal) {
    return this.linked<Span>(`/entities/${entity}/mentions`, 10, cursor, signal);
  }

  /** Read rows that belong to another row. Their cursor is a number of rows. */
  private async linked<Row>(path: string, limit: number, cursor: string | null, signal: AbortSignal) {
    const offset = Number(cursor ?? 0);
    const { items, total } = await this.get<Page<Row>>(path, { limit, offset }, signal);
    const end = offset + items.length;
    return { items, total, next_cursor: end < (total ?? 0) ? String(end) : null };
  }

  documentText(document: number, start: number, end: number, signal: AbortSignal) {
    return this.get<DocumentText>(`/documents/${document}/text`, { start, end }, signal);
  }

  suggest(text: string, query: Query, signal: AbortSignal) {
    return this.get<Suggestions>("/suggest", { ...query, q: text.slice(0, 200) }, signal);
  }

  paths(from: number, to: number, signal: AbortSignal) {
    return this.get<Paths>("/path", { from, to }, signal);
  }

  async mapPart(community: number, signal: AbortSignal) {
    const path = `${this.root}/map${community === ROOT ? "" : `/${community}`}`;
    const response = await this.connection.fetch(path + formatQuery({ as_of: this.version }), { signal });
    return parseMapPart(await response.arrayBuffer());
  }

  places(
    entities: readonly number[], communities: readonly number[], relationships: readonly number[],
    signal: AbortSignal,
  ) {
    const texts = (numbers: readonly number[]) => numbers.map(String);
    const query = {
      entity: texts(entities), community: texts(communities), relationship: texts(relationships),
    };
    return this.get<Awaited<ReturnType<IndexData["places"]>>>("/map/places", query, signal);
  }

  async versions(signal: AbortSignal) {
    const path = `${this.root}/versions`;
    return (await this.connection.get<{ versions: Version[] }>(path, {}, signal)).versions;
  }

  async isBuilt(signal: AbortSignal) {
    return (await this.connection.get<IndexSummary>(this.root, {}, signal)).version > 0;
  }

  filterChoices(signal: AbortSignal) {
    return this.get<FilterChoices>("/stats", {}, signal);
  }

  atVersion(version: number) {
    return this.connection.open(this.name, version);
  }

  changedRows(table: ChangedTable, query: Query, signal: AbortSignal) {
    return this.connection.get<ChangedRows>(`${this.root}/diff/${table}`, query, signal);
  }

  async ask(asked: Question, listener: AnswerListener, signal: AbortSignal): Promise<Answer> {
    const { question, method, names, filters, version, conversation } = asked;
    const { types: entity_types, documents, since, until } = filters;
    const body = {
      question, ...(names ? { names } : {}), stream: true, context: true,
      ...(conversation.length ? { conversation } : {}),
      ...(version === null ? {} : { as_of: version }),
      filters: {
        documents, entity_types, ...(since ? { since } : {}), ...(until ? { until } : {}),
      },
    };
    const path = method === "ask" ? "/ask" : `/search/${encodeURIComponent(method)}`;
    const response = await this.connection.fetch(this.root + path, {
      method: "POST", body: JSON.stringify(body), signal,
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    });
    try {
      for await (const { event, data } of readEvents(response)) {
        if (event === "status") listener.onStatus(String(data.message ?? ""));
        else if (event === "text") listener.onText(String(data.text ?? ""));
        else if (event === "restart") listener.onRestart();
        else if (event === "answer") return data as unknown as Answer;
        else if (event === "error") {
          throw new ApiError(Number(data.status), String(data.code), String(data.detail));
        }
      }
    } catch (error) {
      // A stream that breaks off is a TypeError; what else fails is known.
      if (!(error instanceof TypeError)) throw error;
    }
    this.connection.look().catch(() => {});
    throw new ApiError(0, "cut_off", texts.errors.cutOff);
  }
}

function formatQuery(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const item of value) parameters.append(name, item);
    else if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text && `?${text}`;
}

/** Read the problem details of a failed request; a proxy may answer something else. */
async function readProblem(response: Response): Promise<ApiError> {
  const { status } = response;
  try {
    const { code, detail } = (await response.json()) as { code?: string; detail?: string };
    if (detail) return new ApiError(status, code ?? "", detail);
  } catch {
    // The body is not JSON: the status has to do.
  }
  // A proxy answers with these for a server that is gone; the server's own replies are JSON.
  if ([502, 503, 504].includes(status)) return noServer();
  return new ApiError(status, "", texts.errors.status(status));
}

/** Return filters as the query of a list. */
export function filterQuery(filters: Filters): Query {
  const where = Object.entries(filters.documents).flatMap(([column, patterns]) =>
    patterns.map((pattern) => `${column}=${pattern}`),
  );
  return { type: filters.types, where, since: filters.since, until: filters.until };
}
