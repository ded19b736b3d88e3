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

/** Return what is lit for a whole answer: its sub-graph, or else what its citations light. */
export async function highlightOfAnswer(
  answer: Answer, data: IndexData, signal: AbortSignal,
): Promise<Highlight> {
  const { graph } = answer;
  if (graph?.entities.length) {
    return {
      entities: graph.entities.map((entity) => entity.human_readable_id),
      relationships: graph.relationships.map((relationship) => relationship.human_readable_id),
      communities: [],
    };
  }
  if (answer.outcome !== "answered") return NO_HIGHLIGHT;
  const citations = answer.citations.slice(0, MAX_LIT_CITATIONS);
  const lit = await Promise.all(
    citations.map((citation) => highlightOfCitation(citation, answer, data, signal)),
  );
  // Rows that were read and not cited are no evidence; a global answer weighs all reports.
  const read = answer.method === "global" ? numbersOf(contextRows(answer, "Reports")) : [];
  const first = (numbers: number[]) => [...new Set(numbers)].slice(0, MAX_LIT);
  return {
    entities: first(lit.flatMap(({ entities }) => entities)),
    relationships: first(lit.flatMap(({ relationships }) => relationships)),
    communities: first([
      ...lit.flatMap(({ communities }) => communities), ...reportsNamedIn(answer.answer), ...read,
    ]),
  };
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
  const unit = await data.row("text_units", citation.text_unit, signal);
  const quote = citation.quote.toLowerCase();
  const named = unit.entities.filter(({ title, aliases }) =>
    [title, ...aliases].some((name) => quote.includes(name.toLowerCase())),
  );
  const entities = named.length ? named : unit.entities.slice(0, 5);
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
