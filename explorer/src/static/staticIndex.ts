/** An index whose rows are in the page: it needs no server. */

import {
  ApiError, type Details, type DocumentText, type Entity, type IndexData, type IndexSummary, type Page, type Paths,
  type Query, type Relationship, type Rows as ShownRows, type Span, type TableName, type TextUnit,
} from "../api";
import { texts } from "../texts";
import { findNames, fold, splitWords } from "./findNames";
import { findPath } from "./findPath";
import { type IndexPart, readRows, type Rows } from "./indexPart";
import { StaticMap } from "./staticMap";

type SpanColumns = Rows["entities"][number]["evidence"];

export class StaticIndex implements IndexData {
  readonly summary: IndexSummary;
  /** What of the index is not on the page; empty: all is. */
  readonly notice: string;
  private readonly rows: Rows;
  private readonly map: StaticMap;
  private readonly byNumber: Record<TableName, ReadonlyMap<number, ShownRows[TableName]>>;
  private readonly lists: { [T in TableName]: ShownRows[T][] };
  /** Texts of documents by code points: offsets count those, and not the units of JavaScript. */
  private readonly letters = new Map<number, string[]>();

  constructor(private readonly part: IndexPart) {
    this.rows = readRows(part.tables);
    this.map = new StaticMap(this.rows, part.version);
    this.summary = {
      name: part.name, version: part.version, workflow: part.workflow, methods: [], scopes: ["read"],
      tables: { ...part.rows, ...Object.fromEntries(Object.entries(this.rows).map(([name, rows]) => [name, rows.length])) },
    };
    const { entities, relationships, communities, documents, text_units } = this.rows;
    const { entities: nEntities = 0, documents: nDocuments = 0 } = part.rows;
    this.notice = [
      entities.length < nEntities ? texts.staticPage.part(entities.length, nEntities) : "",
      documents.length < nDocuments ? texts.staticPage.documents(documents.length, nDocuments) : "",
    ].join(" ").trim();
    const titles = new Map(entities.map(({ number, title }) => [number, title]));
    const children = groupBy(communities, ({ parent }) => parent);
    const documentTitles = new Map(documents.map(({ number, title }) => [number, title]));
    const unitDocuments = new Map(text_units.map(({ number, document }) => [number, document]));
    const named = groupBy(this.rows.mentions, ({ text_unit }) => unitDocuments.get(text_unit));
    this.lists = {
      entities,
      documents: documents.map((row) => (
        { ...row, n_entities: new Set(named.get(row.number)?.map(({ entity }) => entity)).size }
      )),
      relationships: relationships.map((row) => ({
        ...row, source_title: titles.get(row.source) ?? "", target_title: titles.get(row.target) ?? "",
      })),
      communities: communities.map((row) => ({
        ...row, children: (children.get(row.community) ?? []).map(({ community }) => community),
      })),
      text_units: text_units.map((row) => ({
        ...row, document_title: documentTitles.get(row.document) ?? "",
        get text() { return ""; },
      })),
    };
    for (const unit of this.lists.text_units) {
      Object.defineProperty(unit, "text", { get: () => this.cut(unit.document, unit.start_char, unit.end_char) });
    }
    const index = <Row extends ShownRows[TableName]>(listed: readonly Row[]) =>
      new Map(listed.map((row) => [numberOf(row), row]));
    this.byNumber = {
      entities: index(this.lists.entities), relationships: index(this.lists.relationships),
      communities: index(this.lists.communities), documents: index(this.lists.documents),
      text_units: index(this.lists.text_units),
    };
  }

  async page<T extends TableName>(table: T, query: Query): Promise<Page<ShownRows[T]>> {
    const wanted = fold(String(query.q ?? ""));
    const types = (query.type ?? []) as readonly string[];
    let rows: ShownRows[TableName][] = this.lists[table];
    if (wanted) rows = rows.filter((row) => fold(searchedText(row)).includes(wanted));
    if (table === "entities" && types.length) rows = rows.filter((row) => types.includes((row as Entity).type));
    if (table === "entities" && typeof query.community === "number") {
      const inside = this.membersOf(query.community);
      rows = rows.filter((row) => inside.has((row as Entity).number));
    }
    const dated = this.datedRows(query)[table];
    if (dated) rows = rows.filter((row) => dated.has(numberOf(row)));
    for (const name of ["level", "parent", "document"]) {
      if (typeof query[name] === "number") rows = rows.filter((row) => valueOf(row, name) === query[name]);
    }
    return pageOf(sortRows(rows, String(query.sort ?? "")) as ShownRows[T][], query.cursor, Number(query.limit ?? 50));
  }

  async row<T extends keyof Details>(table: T, number: number): Promise<Details[T]> {
    const found = this.byNumber[table === "reports" ? "communities" : table as TableName].get(number);
    if (!found) throw new ApiError(404, "no_such_row", texts.errors.notOnPage);
    const details = {
      entities: () => this.entityDetails(number),
      relationships: () => this.relationshipDetails(number),
      communities: () => this.communityDetails(number),
      reports: () => this.report(number),
      documents: () => found,
      text_units: () => ({ ...found, text: (found as TextUnit).text, entities: this.entitiesNamedIn(number) }),
    };
    return details[table]() as Details[T];
  }

  async relationshipsOf(entity: number, cursor: string | null): Promise<Page<Relationship>> {
    return pageOf(this.lists.relationships.filter(({ source, target }) => source === entity || target === entity), cursor, 25);
  }

  async neighbourhood(entity: number) {
    const relationships = this.lists.relationships.filter(({ source, target }) => source === entity || target === entity);
    const numbers = new Set([entity, ...relationships.flatMap(({ source, target }) => [source, target])]);
    return { entities: [...numbers].map((number) => this.entity(number)!), relationships };
  }

  async mentionsOf(entity: number, cursor: string | null): Promise<Page<Span>> {
    const units = new Set(this.rows.mentions.filter((row) => row.entity === entity).map(({ text_unit }) => text_unit));
    const spans = this.lists.text_units.filter(({ number }) => units.has(number)).map((unit) => ({
      document: unit.document, title: unit.document_title, start_char: unit.start_char, end_char: unit.end_char,
      text: unit.text, text_unit: unit.number,
    }));
    return pageOf(spans, cursor, 10);
  }

  async documentText(document: number, start: number, end: number): Promise<DocumentText> {
    const text = this.cut(document, start, end);
    const units = this.lists.text_units.filter((unit) =>
      unit.document === document && unit.start_char < end && unit.end_char > start);
    const numbers = new Set(units.map(({ number }) => number));
    const places = new Set<string>();
    const mentions = this.rows.mentions.filter((row) => {
      const place = `${row.entity} ${row.start_char} ${row.end_char}`;
      if (!numbers.has(row.text_unit) || row.start_char < start || row.end_char > end || places.has(place)) return false;
      places.add(place);
      return true;
    });
    return {
      text, start_char: start, end_char: start + [...text].length,
      n_characters: this.document(document)?.n_characters ?? 0,
      text_units: units.map(({ number, start_char, end_char }) => ({ number, start_char, end_char })),
      mentions: mentions.map(({ entity, start_char, end_char }) =>
        ({ entity, title: this.entity(entity)?.title ?? "", start_char, end_char })),
    };
  }

  async suggest(text: string, query: Query) {
    const words = splitWords(text);
    const limit = Number(query.limit ?? 8);
    const matches = (title: string) => words.every((word) => ` ${fold(title)}`.includes(` ${word}`));
    const find = <Row>(rows: readonly Row[], isFound: (row: Row) => boolean) =>
      words.length ? rows.filter(isFound).slice(0, limit) : [];
    return {
      entities: words.length ? findNames(this.lists.entities, words, limit) : [],
      communities: find(this.lists.communities, ({ title }) => matches(title)),
      text_units: find(this.lists.text_units, (unit) => fold(unit.text).includes(words.join(" "))),
    };
  }

  async paths(from: number, to: number): Promise<Paths> {
    const path = findPath(this.rows.relationships, from, to);
    return {
      paths: path ? [path] : [],
      entities: (path?.entities ?? []).map((number) => this.entity(number)!),
      relationships: (path?.relationships ?? []).map((number) => this.relationship(number)),
    };
  }

  async mapPart(community: number) {
    return this.map.readPart(community);
  }

  async places(entities: readonly number[], communities: readonly number[], relationships: readonly number[]) {
    const links = relationships.map((number) => this.relationship(number)).filter(Boolean);
    const shown = new Set([...entities, ...links.flatMap(({ source, target }) => [source, target])]);
    return {
      entities: this.map.placeEntities(shown), communities: this.map.placeCommunities(communities), relationships: links,
    };
  }

  async timeline(entity: number | null) {
    const { documents, mentions, text_units } = this.rows;
    const units = new Set(mentions.filter((row) => row.entity === entity).map(({ text_unit }) => text_unit));
    const periods = new Map(documents.map(({ number, period }) => [number, period]));
    const mentioned = text_units.filter(({ number }) => units.has(number)).map(({ document }) => periods.get(document));
    return {
      n_undated: documents.filter(({ period }) => period === null).length,
      periods: this.part.periods.map(([since, until], at) => ({
        since, until, documents: documents.filter(({ period }) => period === at).length,
        mentions: mentioned.filter((period) => period === at).length,
      })),
    };
  }

  /** Return the numbers of the rows that filters by date keep, by table; none without such filters. */
  private datedRows({ since, until }: Query): Partial<Record<TableName, Set<number>>> {
    if (!since && !until) return {};
    const numbers = (rows: readonly { number: number }[]) => new Set(rows.map(({ number }) => number));
    const documents = numbers(this.rows.documents.filter(({ date }) => (
      date && `${date}~` >= String(since ?? "") && (!until || date <= `${String(until)}~`)
    )));
    const text_units = numbers(this.rows.text_units.filter(({ document }) => documents.has(document)));
    const mentions = this.rows.mentions.filter(({ text_unit }) => text_units.has(text_unit));
    return {
      documents, text_units, entities: new Set(mentions.map(({ entity }) => entity)),
      relationships: numbers(this.rows.relationships.filter((row) => row.text_unit_ids.some((unit) => text_units.has(unit)))),
    };
  }

  async versions() {
    const { version, workflow } = this.summary;
    return [{ number: version, is_current: true, workflow, date: "", calls: 0, cost: null }];
  }

  async filterChoices() {
    return { entity_types: this.map.countTypes(), document_columns: [] };
  }

  private entity(number: number) {
    return this.byNumber.entities.get(number) as Rows["entities"][number] | undefined;
  }

  private document(number: number) {
    return this.byNumber.documents.get(number) as Rows["documents"][number] | undefined;
  }

  private relationship(number: number) {
    return this.byNumber.relationships.get(number) as Relationship;
  }

  private community(number: number) {
    return this.byNumber.communities.get(number) as (ShownRows["communities"] & Rows["communities"][number]) | undefined;
  }

  private cut(document: number, start: number, end: number): string {
    let letters = this.letters.get(document);
    if (!letters) {
      letters = Array.from(this.document(document)?.text ?? "");
      if (this.letters.size > 50) this.letters.clear();
      this.letters.set(document, letters);
    }
    return letters.slice(start, end).join("");
  }

  private spans(evidence: SpanColumns): Span[] {
    return evidence.map(([document, start_char, end_char]) => ({
      document, start_char, end_char, text: this.cut(document, start_char, end_char), text_unit: null,
      title: this.document(document)?.title ?? "",
    }));
  }

  private ancestors(community: number) {
    const found = [];
    for (let row = this.community(community); row; row = this.community(row.parent)) found.unshift(row);
    return found;
  }

  private membersOf(community: number): Set<number> {
    return new Set(this.rows.entities.filter((row) =>
      this.ancestors(row.community).some((one) => one.community === community)).map(({ number }) => number));
  }

  private entitiesNamedIn(textUnit: number): Entity[] {
    const numbers = new Set(this.rows.mentions.filter((row) => row.text_unit === textUnit).map(({ entity }) => entity));
    return [...numbers].map((number) => this.entity(number)!);
  }

  private entityDetails(number: number): Details["entities"] {
    const row = this.entity(number)!;
    return { ...row, communities: this.ancestors(row.community), evidence: this.spans(row.evidence) };
  }

  private relationshipDetails(number: number): Details["relationships"] {
    const row = this.rows.relationships.find((one) => one.number === number)!;
    return { ...this.relationship(number), evidence: this.spans(row.evidence), text_units: row.text_unit_ids };
  }

  private communityDetails(number: number): Details["communities"] {
    const row = this.community(number)!;
    const ancestors = this.ancestors(number).slice(0, -1);
    const members = this.membersOf(number);
    const weights = new Map<number, number>();
    for (const { source, target, weight } of this.rows.relationships) {
      if (members.has(source) === members.has(target)) continue;
      const outside = this.entity(members.has(source) ? target : source);
      const other = this.ancestors(outside?.community ?? -1).find(({ level }) => level === row.level);
      if (other) weights.set(other.community, (weights.get(other.community) ?? 0) + weight);
    }
    const neighbours = [...weights].sort(([, one], [, two]) => two - one).slice(0, 50)
      .map(([other, weight]) => ({ ...this.community(other)!, weight }));
    return {
      ...row, ancestors, neighbours, has_report: row.full_content !== null || Boolean(row.summary),
      child_communities: row.children.map((child) => this.community(child)!),
    };
  }

  private report(number: number): Details["reports"] {
    const row = this.community(number)!;
    return { ...row, full_content: row.full_content ?? row.summary, rank: row.rank ?? 0 };
  }
}

function pageOf<Row>(rows: Row[], cursor: unknown, limit: number): Page<Row> {
  const start = Number(cursor ?? 0);
  const end = start + limit;
  return { items: rows.slice(start, end), total: rows.length, next_cursor: end < rows.length ? String(end) : null };
}

function valueOf(row: object, name: string): unknown {
  return (row as Record<string, unknown>)[name];
}

function numberOf(row: ShownRows[TableName]): number {
  return "number" in row ? row.number : row.community;
}

function searchedText(row: ShownRows[TableName]): string {
  const values = ["title", "source_title", "target_title", "type", "description", "path", "text"];
  return values.map((name) => valueOf(row, name) ?? "").join(" ");
}

function sortRows<Row extends object>(rows: readonly Row[], sort: string): readonly Row[] {
  const name = sort.replace(/^-/, "");
  if (!name) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [valueOf(one, name), valueOf(other, name)];
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}

function groupBy<Row, Key>(rows: readonly Row[], key: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group) group.push(row);
    else groups.set(key(row), [row]);
  }
  return groups;
}
