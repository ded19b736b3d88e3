/** The data of an index: one interface, for a server, a static page and a chat. */

import type { MapPart, Place } from "./graph/mapPart";
import type { Filters, Kind } from "./state";

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
  /** Absent on a static page. */
  statements?: Statement[];
}
/** A statement of a report, and the sentences of documents that state it; `finding` null: the summary. */
export interface Statement { finding: number | null; text: string; n_documents: number; sources: Span[] }
export interface Document {
  /** Absent on a static page. */
  id?: string;
  number: number; title: string; path: string; creation_date: string; language: string;
  metadata: string | null; n_characters: number; n_text_units: number;
  /** The suffix of the file, the date that is stated or in the title, and the entities that the document names. */
  type: string; date: string; n_entities: number;
  /** Pages, those read by OCR, and what was not read; absent on a static page. */
  n_pages?: number; n_recognized?: number; unread?: string;
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
  /** Pages, slides or rows of a sheet; none in a file without a server. */
  pages?: PageSpan[];
}
export interface PageSpan {
  kind: string; number: number; label: string; engine: string; start_char: number; end_char: number;
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
export interface Suggestions { entities: Entity[]; communities: Community[]; text_units: TextUnit[] }
export interface Paths {
  paths: { entities: number[]; relationships: number[]; cost: number }[];
  entities: Entity[];
  relationships: Relationship[];
}
/** An entity and its neighbours, with the strongest relationships between it and them. */
export interface Neighbourhood { entities: Entity[]; relationships: Relationship[] }
/** What filters can be set to. */
export interface FilterChoices { entity_types: Record<string, number>; document_columns: string[] }

/** The documents of each period, and their passages that mention an entity. */
export interface Timeline {
  periods: { since: string; until: string; documents: number; mentions: number }[];
  /** Number of documents without a date. */
  n_undated: number;
}
export const QUERY_LANGUAGES = ["sql", "cypher"] as const;
export type QueryLanguage = (typeof QUERY_LANGUAGES)[number];
/** The tables that queries can name, or the reason why there is no engine. */
export type QuerySchema = Record<QueryLanguage, {
  problem: string; tables: { name: string; meaning: string; rows: number | null; columns: Record<string, string> }[];
}>;
/** The rows of a query; `links` has the rows of the index that the values of a column stand for. */
export interface QueryResult {
  engine: string; columns: string[]; rows: unknown[][]; is_cut: boolean; seconds: number;
  links: { column: number; kind: Kind; numbers: (number | null)[] }[];
}

/** The part of the graph that a path or a neighbourhood consists of, as searches return it. */
export interface AnswerGraph {
  entities: { human_readable_id: number; title: string }[];
  relationships: { human_readable_id: number; source: string; target: string }[];
}
export interface Citation {
  number: number; document: string; document_id: string; path: string; start_char: number;
  end_char: number; quote: string; text_unit: number; cited_as: string;
  /** Where a person finds it, such as "p. 12". */
  location?: string;
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
  /** Settings of the search to override. */
  settings?: Record<string, unknown>;
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

/** Return whether an error says that no server answered. */
export const isNoServer = (error: unknown) => error instanceof ApiError && error.code === "no_server";

/** The data of one index at one version. */
export interface IndexData {
  page<T extends TableName>(table: T, query: Query, signal: AbortSignal): Promise<Page<Rows[T]>>;
  row<T extends keyof Details>(table: T, number: number, signal: AbortSignal): Promise<Details[T]>;
  relationshipsOf(entity: number, cursor: string | null, signal: AbortSignal): Promise<Page<Relationship>>;
  neighbourhood(entity: number, signal: AbortSignal): Promise<Neighbourhood>;
  mentionsOf(entity: number, cursor: string | null, signal: AbortSignal): Promise<Page<Span>>;
  documentText(document: number, start: number, end: number, signal: AbortSignal): Promise<DocumentText>;
  /** Draw a page of a document with a span marked; a file without a server has no pictures. */
  pagePicture?(
    document: number, page: number, span: { start: number; end: number }, signal: AbortSignal,
  ): Promise<Blob>;
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
  /** Count documents and mentions of an entity over time; filters by date do not count. Absent in a chat. */
  timeline?(entity: number | null, filters: Filters, signal: AbortSignal): Promise<Timeline>;
  /** Queries, and what they can name. Absent without a server. */
  querySchema?(signal: AbortSignal): Promise<QuerySchema>;
  query?(language: QueryLanguage, query: string, signal: AbortSignal): Promise<QueryResult>;
  /** Read the rows that differ between two versions. Absent where only one version can be read. */
  changedRows?(table: ChangedTable, query: Query, signal: AbortSignal): Promise<ChangedRows>;
  /** Open another version of the index. Absent where only one version can be read. */
  atVersion?(version: number): IndexData;
  /** Absent where nothing can be asked: on a static page. */
  ask?(question: Question, listener: AnswerListener, signal: AbortSignal): Promise<Answer>;
  /** Return whether an index without rows has been built since. */
  isBuilt?(signal: AbortSignal): Promise<boolean>;
}

/** Return filters as the query of a list. */
export function filterQuery(filters: Filters): Query {
  const where = Object.entries(filters.documents).flatMap(([column, patterns]) =>
    patterns.map((pattern) => `${column}=${pattern}`),
  );
  return { type: filters.types, where, since: filters.since, until: filters.until };
}
