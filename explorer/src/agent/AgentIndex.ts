/** An index as an agent's tools show it: the part of the graph that one result holds. */

import {
  ApiError, type Details, type DocumentText, type Entity, type EntityDetails, type IndexData, type Page,
  type Paths, type Query, type Relationship, type Rows, type Span, type Suggestions, type TableName,
} from "../api";
import { makeEntityPart, type MapPart, ROOT } from "../graph/mapPart";
import { texts } from "../texts";
import type { AgentHost } from "./agentHost";

/** The result of the tool `graph`. `entity` is the number of the entity that was asked for. */
export interface GraphResult {
  index: string; version: number; mode: "neighbourhood" | "path" | "entity"; entity: number; to?: number;
  entities?: Entity[]; relationships?: Relationship[]; paths?: Paths["paths"];
  mentions?: Span[]; left_out: number;
}

// Each next entity is turned by the golden angle, which spreads them evenly over a disc.
const TURN = Math.PI * (3 - Math.sqrt(5));
const DISC = 0.85;

export class AgentIndex implements IndexData {
  private readonly entities: Map<number, Entity>;
  private readonly relationships: Map<number, Relationship>;
  /** Positions of entities in the disc, in the order of the result: the nearest are in the middle. */
  private readonly position: Map<number, number>;

  constructor(private readonly host: AgentHost, private readonly shown: GraphResult) {
    this.entities = new Map(shown.entities?.map((row) => [row.number, row]));
    this.relationships = new Map(shown.relationships?.map((row) => [row.number, row]));
    const order = [shown.entity, ...this.entities.keys()].filter((number) => this.entities.has(number));
    this.position = new Map([...new Set(order)].map((number, at) => [number, at]));
  }

  get tables() {
    return { entities: this.entities.size, relationships: this.relationships.size };
  }

  async page<T extends TableName>(table: T, query: Query): Promise<Page<Rows[T]>> {
    const rows = table === "entities" ? [...this.entities.values()]
      : table === "relationships" ? [...this.relationships.values()] : [];
    const text = String(query.q ?? "").toLowerCase();
    const items = rows.filter((row) => JSON.stringify(row).toLowerCase().includes(text));
    return { items: items as Rows[T][], next_cursor: null, total: items.length };
  }

  async row<T extends keyof Details>(table: T, number: number): Promise<Details[T]> {
    const relationship = this.relationships.get(number);
    if (table === "entities") {
      const { entities } = await this.graph({ mode: "entity", entity: String(number) });
      const details = { evidence: [], ...entities?.[0] } as unknown as EntityDetails;
      return details as Details[T];
    }
    if (table === "relationships" && relationship) {
      return { ...relationship, evidence: [], text_units: [] } as unknown as Details[T];
    }
    throw notHere();
  }

  async relationshipsOf(entity: number, cursor: string | null): Promise<Page<Relationship>> {
    const found = await this.graph({ entity: String(entity), cursor: cursor ?? "" });
    return { items: found.relationships ?? [], next_cursor: null, total: null };
  }

  async neighbourhood(entity: number) {
    const { entities = [], relationships: found = [] } = await this.graph({ entity: String(entity) });
    const relationships = found.filter(({ source, target }) => source === entity || target === entity);
    const numbers = new Set([entity, ...relationships.flatMap(({ source, target }) => [source, target])]);
    return { entities: entities.filter(({ number }) => numbers.has(number)), relationships };
  }

  async mentionsOf(entity: number): Promise<Page<Span>> {
    const { mentions = [] } = await this.graph({ mode: "entity", entity: String(entity) });
    return { items: mentions, next_cursor: null, total: null };
  }

  documentText(): Promise<DocumentText> {
    return Promise.reject(notHere());
  }

  async suggest(text: string): Promise<Suggestions> {
    const typed = text.toLowerCase();
    const entities = [...this.entities.values()].filter(({ title }) => title.toLowerCase().includes(typed));
    return { entities: entities.slice(0, 8), communities: [], text_units: [] };
  }

  async paths(from: number, to: number): Promise<Paths> {
    const known = this.shown;
    const isShown = known.mode === "path" && known.entity === from && known.to === to;
    const found = isShown ? known : await this.graph({ mode: "path", entity: String(from), to: String(to) });
    const { paths = [], entities = [], relationships = [] } = found;
    return { paths, entities, relationships };
  }

  async mapPart(): Promise<MapPart> {
    const rows = [...this.position.keys()].map((number) => ({ ...this.entities.get(number)!, ...this.place(number) }));
    const links = [...this.relationships.values()].filter(
      ({ source, target }) => this.position.has(source) && this.position.has(target),
    );
    const { entity, mode, version } = this.shown;
    const near = links.filter(({ source, target }) => source === entity || target === entity).length;
    const leftOut = mode === "path" ? 0 : Math.max(0, (this.entities.get(entity)?.degree ?? 0) - near);
    return makeEntityPart(version, ROOT, rows, links, leftOut);
  }

  async places(entities: readonly number[], _: readonly number[], relationships: readonly number[]) {
    const links = relationships.flatMap((number) => this.relationships.get(number) ?? []);
    const numbers = new Set([...entities, ...links.flatMap(({ source, target }) => [source, target])]);
    const found = [...numbers].filter((number) => this.position.has(number)).map((number) => {
      const { title, type } = this.entities.get(number)!;
      return { number, title, type, radius: 0, ...this.place(number) };
    });
    return { entities: found, communities: [], relationships: links };
  }

  async versions() {
    return [];
  }

  async filterChoices() {
    return { entity_types: {}, document_columns: [] };
  }

  private place(number: number): { x: number; y: number } {
    const at = this.position.get(number)!;
    const distance = DISC * Math.sqrt(at / Math.max(1, this.position.size - 1));
    return { x: distance * Math.cos(at * TURN), y: distance * Math.sin(at * TURN) };
  }

  private async graph(asked: Record<string, unknown>): Promise<GraphResult> {
    return await this.host.call("graph", { index: this.shown.index, ...asked }) as unknown as GraphResult;
  }
}

const notHere = () => new ApiError(404, "not_here", texts.errors.notInChat);
