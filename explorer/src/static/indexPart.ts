/** The part of an index that a static page holds, as graphrag_index/export writes it. */

export interface IndexPart {
  name: string;
  version: number;
  workflow: string;
  /** Number of rows of each table in the whole index. */
  rows: Record<string, number>;
  tables: Tables;
  /** The first and the last date of each period of the timeline. */
  periods: readonly (readonly [since: string, until: string])[];
}

type Span = readonly [document: number, start: number, end: number];
type Column<T> = readonly T[];

/** Columns of values. Numbers are those of the index. */
export interface Tables {
  entities: {
    number: Column<number>; title: Column<string>; type: Column<string>; description: Column<string>;
    degree: Column<number>; frequency: Column<number>; aliases: Column<string[]>;
    evidence: Column<Span[]>;
    /** The deepest community, or -1, and the place in its disc. */
    community: Column<number>; x: Column<number>; y: Column<number>;
  };
  relationships: {
    number: Column<number>; source: Column<number>; target: Column<number>; type: Column<string>;
    description: Column<string>; weight: Column<number>; stated: Column<boolean>;
    evidence: Column<Span[]>; text_unit_ids: Column<number[]>;
  };
  communities: {
    community: Column<number>; level: Column<number>; parent: Column<number>; title: Column<string>;
    size: Column<number>; summary: Column<string>; full_content: Column<string | null>;
    rank: Column<number | null>; x: Column<number>; y: Column<number>; radius: Column<number>;
  };
  documents: {
    number: Column<number>; title: Column<string>; path: Column<string>; creation_date: Column<string>;
    language: Column<string>; metadata: Column<string | null>; n_characters: Column<number>;
    n_text_units: Column<number>; type: Column<string>; text: Column<string>;
    date: Column<string>; period: Column<number | null>;
  };
  text_units: {
    number: Column<number>; document: Column<number>; start_char: Column<number>;
    end_char: Column<number>; headings: Column<string>;
  };
  mentions: { entity: Column<number>; text_unit: Column<number>; start_char: Column<number>; end_char: Column<number> };
}

type Row<Columns> = { [Name in keyof Columns]: Columns[Name] extends readonly (infer Value)[] ? Value : never };
export type Rows = { [Table in keyof Tables]: Row<Tables[Table]>[] };

/** Turn columns into rows. */
export function readRows(tables: Tables): Rows {
  const rows = Object.entries(tables).map(([table, columns]) => {
    const entries = Object.entries(columns as Record<string, readonly unknown[]>);
    const length = entries[0]?.[1].length ?? 0;
    return [table, Array.from({ length }, (_, at) =>
      Object.fromEntries(entries.map(([name, values]) => [name, values[at]])))];
  });
  return Object.fromEntries(rows) as Rows;
}

/** Read the part of an index that is in the page; null if the page has none. */
export async function readEmbeddedPart(): Promise<IndexPart | null> {
  const element = document.getElementById("index-data");
  if (!element) return null;
  const bytes = Uint8Array.from(atob(element.textContent ?? ""), (letter) => letter.charCodeAt(0));
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as IndexPart;
}
