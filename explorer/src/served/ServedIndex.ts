/** The data of an index over the HTTP API. */

import {
  type Answer, type AnswerListener, ApiError, type ChangedRows, type ChangedTable, type Details,
  type DocumentText, type FilterChoices, filterQuery, type IndexData, type IndexSummary, type Neighbourhood, type Page, type Paths,
  type Query, type QueryLanguage, type QueryResult, type QuerySchema, type Question, type Relationship, type Rows,
  type Span, type Suggestions, type TableName, type Timeline, type Version,
} from "../api";
import { parseMapPart, ROOT } from "../graph/mapPart";
import { readEvents } from "../parts/readEvents";
import { type Filters, NO_FILTERS } from "../state";
import { texts } from "../texts";
import { type Connection, formatQuery, indexPath } from "./Connection";

// Relationships of an entity that are loaded to show its neighbours.
const MAX_NEIGHBOURS = 500;

/** An index of a server. */
export class ServedIndex implements IndexData {
  private readonly root: string;

  constructor(readonly connection: Connection, readonly name: string, readonly version: number | null) {
    this.root = indexPath(name);
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

  neighbourhood(entity: number, signal: AbortSignal) {
    return this.get<Neighbourhood>("/neighbourhood", { entity, hops: 1, limit: MAX_NEIGHBOURS }, signal);
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

  async pagePicture(document: number, page: number, span: { start: number; end: number }, signal: AbortSignal) {
    const query = formatQuery({ span: `${span.start}:${span.end}`, as_of: this.version });
    const path = `${this.root}/documents/${document}/pages/${page}.jpg${query}`;
    return (await this.connection.fetch(path, { signal })).blob();
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
    const query = { entity: texts(entities), community: texts(communities), relationship: texts(relationships) };
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

  timeline(entity: number | null, { documents }: Filters, signal: AbortSignal) {
    return this.get<Timeline>("/timeline", { ...filterQuery({ ...NO_FILTERS, documents }), entity }, signal);
  }

  querySchema(signal: AbortSignal) {
    return this.get<QuerySchema>("/schema", {}, signal);
  }

  query(language: QueryLanguage, query: string, signal: AbortSignal) {
    const body = { query, ...(this.version === null ? {} : { as_of: this.version }) };
    return this.connection.send<QueryResult>("POST", `${this.root}/${language}`, body, signal);
  }

  atVersion(version: number) {
    return new ServedIndex(this.connection, this.name, version);
  }

  changedRows(table: ChangedTable, query: Query, signal: AbortSignal) {
    return this.connection.get<ChangedRows>(`${this.root}/diff/${table}`, query, signal);
  }

  async ask(asked: Question, listener: AnswerListener, signal: AbortSignal): Promise<Answer> {
    const { question, method, names, filters, version, conversation, settings } = asked;
    const { types: entity_types, documents, since, until } = filters;
    const body = {
      question, ...(names ? { names } : {}), stream: true, context: true,
      ...(conversation.length ? { conversation } : {}), ...(settings ? { settings } : {}),
      ...(version === null ? {} : { as_of: version }),
      filters: { documents, entity_types, ...(since ? { since } : {}), ...(until ? { until } : {}) },
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
