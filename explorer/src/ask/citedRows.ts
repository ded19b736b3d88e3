/** Rows of the index that an answer and its citations rest on. */

import type { Answer, Citation, ContextRow, Entity, IndexData } from "../api";
import { type Highlight, NO_HIGHLIGHT } from "../state";

// Entities and relationships that are lit in the graph for a whole answer.
const MAX_LIT = 40;
// Citations whose passages are loaded for this.
const MAX_LIT_CITATIONS = 10;

/** Return the rows of a section of the prompt, such as "Reports". */
export function contextRows(answer: Answer, section: string): ContextRow[] {
  const rows = answer.context_rows ?? answer.context ?? {};
  return rows[section] ?? [];
}

const numbersOf = (rows: ContextRow[]) => rows.flatMap(({ id }) => (typeof id === "number" ? [id] : []));

/** Return the row that a citation names, such as `Reports (3)`. */
export function citedRow(citation: Citation): { section: string; number: number } {
  const [, section = "Sources", number = ""] = /^(.+?) \((\d+)\)$/.exec(citation.cited_as) ?? [];
  return { section, number: number ? Number(number) : citation.text_unit };
}

/** What an answer rests on: what is lit for it, and the entities that its quotations name, the most frequent first. */
export interface Evidence { highlight: Highlight; entities: readonly Pick<Entity, "number" | "title">[] }

const known = new WeakMap<Answer, Promise<Evidence>>();

/** Load what an answer rests on, once for each answer. */
export function loadEvidence(answer: Answer, data: IndexData): Promise<Evidence> {
  const found = known.get(answer) ?? readEvidence(answer, data);
  known.set(answer, found);
  found.catch(() => known.delete(answer));
  return found;
}

async function readEvidence(answer: Answer, data: IndexData): Promise<Evidence> {
  const { signal } = new AbortController();
  const { graph } = answer;
  const citations = answer.outcome === "answered" ? answer.citations.slice(0, MAX_LIT_CITATIONS) : [];
  const named = (await Promise.all(citations.map((citation) => entitiesOf(citation, data, signal)))).flat();
  const counts = new Map<number, number>();
  for (const { number } of named) counts.set(number, (counts.get(number) ?? 0) + 1);
  const entities = [...new Map(named.map((entity) => [entity.number, entity])).values()]
    .sort((one, other) => counts.get(other.number)! - counts.get(one.number)!);
  if (graph?.entities.length) {
    return {
      entities: entities.length ? entities : graph.entities.map((row) => ({ number: row.human_readable_id, title: row.title })),
      highlight: {
        entities: graph.entities.map((entity) => entity.human_readable_id),
        relationships: graph.relationships.map((relationship) => relationship.human_readable_id),
        communities: [],
      },
    };
  }
  if (answer.outcome !== "answered") return { highlight: NO_HIGHLIGHT, entities: [] };
  const lit = await Promise.all(citations.map((citation) => highlightOfCitation(citation, answer, data, signal)));
  // Rows that were read and not cited are no evidence; a global answer weighs all reports.
  const read = answer.method === "global" ? numbersOf(contextRows(answer, "Reports")) : [];
  const first = (numbers: number[]) => [...new Set(numbers)].slice(0, MAX_LIT);
  return {
    entities,
    highlight: {
      entities: first(lit.flatMap((one) => one.entities)),
      relationships: first(lit.flatMap(({ relationships }) => relationships)),
      communities: first([...lit.flatMap(({ communities }) => communities), ...reportsNamedIn(answer.answer), ...read]),
    },
  };
}

/** Return the entities that a quotation names. */
async function entitiesOf(citation: Citation, data: IndexData, signal: AbortSignal): Promise<Entity[]> {
  const unit = await data.row("text_units", citation.text_unit, signal);
  const quote = citation.quote.toLowerCase();
  return unit.entities.filter(({ title, aliases }) =>
    [title, ...aliases].some((name) => quote.includes(name.toLowerCase())));
}

/** Return the reports that a text refers to, such as `[Data: Reports (3, 4)]`. */
function reportsNamedIn(text: string): number[] {
  return [...text.matchAll(/Reports \(([\d, ]+)/g)].flatMap(([, numbers = ""]) =>
    (numbers.match(/\d+/g) ?? []).map(Number));
}

/** Return what is lit for one citation: the entities of its quotation, and what joins them. */
export async function highlightOfCitation(
  citation: Citation, answer: Answer, data: IndexData, signal: AbortSignal,
): Promise<Highlight> {
  const { section, number } = citedRow(citation);
  const named = await entitiesOf(citation, data, signal);
  // A quotation may name what it is about with a word such as "he": then the passage tells.
  const entities = named.length ? named : (await data.row("text_units", citation.text_unit, signal)).entities.slice(0, 5);
  const titles = new Set(entities.map((entity) => entity.title));
  const joins = [
    ...contextRows(answer, "Relationships"),
    ...(answer.graph?.relationships ?? []).map((row) => ({ ...row, id: row.human_readable_id })),
  ].filter(({ source, target }) => titles.has(String(source)) && titles.has(String(target)));
  const relationships = section === "Relationships" ? [number, ...numbersOf(joins)] : numbersOf(joins);
  return {
    entities: entities.map((entity) => entity.number),
    relationships: [...new Set(relationships)],
    communities: await communitiesOfCitation(citation, answer, entities, data, signal),
  };
}

/** Return the report that a citation names, or else the report that was read on its main entity. */
async function communitiesOfCitation(
  citation: Citation, answer: Answer, entities: Entity[], data: IndexData, signal: AbortSignal,
): Promise<number[]> {
  const { section, number } = citedRow(citation);
  if (section === "Reports") return [number];
  const read = new Set(numbersOf(contextRows(answer, "Reports")));
  const [main] = entities;
  if (!read.size || !main) return [];
  const { communities } = await data.row("entities", main.number, signal);
  return communities.map(({ community }) => community).filter((community) => read.has(community));
}
