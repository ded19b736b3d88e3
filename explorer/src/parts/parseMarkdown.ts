/** A small part of Markdown: what answers and reports use. Everything else stays plain text. */

export type Inline =
  | { kind: "text" | "strong" | "emphasis" | "code"; text: string }
  | { kind: "citation"; number: number }
  | { kind: "references"; groups: References[] };

/** Rows that a text refers to, such as `Reports (3, 4)` inside `[Data: ...]`. */
export interface References { section: string; numbers: number[] }

export type Block =
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "paragraph" | "quote"; content: Inline[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][]; numeric: boolean[] };

const MARKER = /^(\s*)([-*•]|\d{1,4}[.)])\s+(.*)$/;
const INLINE =
  /\*\*(.+?)\*\*|`([^`]+)`|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])|\[Data: ([^\]]*)\]|\[(\d{1,4}(?:, ?\d{1,4})*)\]/g;

/** Parse a text into blocks. Links and images are not parsed: nothing in a document is a link. */
export function parseMarkdown(text: string): Block[] {
  return parseLines(text.replaceAll("\r\n", "\n").split("\n"));
}

function parseLines(lines: string[]): Block[] {
  const blocks: Block[] = [];
  let paragraph: string[] = [];
  const close = () => {
    if (paragraph.length) blocks.push({ kind: "paragraph", content: parseInline(paragraph.join(" ")) });
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) close();
    else if (heading) {
      close();
      blocks.push({ kind: "heading", level: heading[1]!.length, content: parseInline(heading[2]!) });
    } else if (MARKER.test(line)) {
      close();
      const end = endOfList(lines, at);
      blocks.push(parseList(lines.slice(at, end)));
      at = end - 1;
    } else if (line.startsWith("|") && /^\|[\s:|-]+\|?$/.test(lines[at + 1] ?? "")) {
      close();
      let end = at;
      while (lines[end]?.startsWith("|")) end++;
      blocks.push(parseTable(lines.slice(at, end)));
      at = end - 1;
    } else if (line.startsWith("> ")) {
      close();
      blocks.push({ kind: "quote", content: parseInline(line.slice(2)) });
    } else paragraph.push(line.trim());
  }
  close();
  return blocks;
}

/** Return the line after a list. A list goes on over blank lines before an item or indented text. */
function endOfList(lines: string[], start: number): number {
  let end = start + 1;
  for (let at = start + 1; at < lines.length; at++) {
    const line = lines[at]!;
    if (!line.trim()) continue;
    const continues = MARKER.test(line) || /^\s{2,}\S/.test(line);
    if (!continues) break;
    end = at + 1;
  }
  return end;
}

function parseList(lines: string[]): Block {
  const [, indent = "", marker = ""] = MARKER.exec(lines[0]!) ?? [];
  const items: string[][] = [];
  for (const line of lines) {
    const found = MARKER.exec(line);
    if (found && found[1]!.length <= indent.length) items.push([found[3]!]);
    else items.at(-1)?.push(line.replace(/^\s{1,4}/, ""));
  }
  const ordered = /\d/.test(marker);
  return { kind: "list", ordered, start: ordered ? parseInt(marker, 10) : 1, items: items.map(parseLines) };
}

function parseTable(lines: string[]): Block {
  const cells = (line: string) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim());
  const [head = "", rule = "", ...rows] = lines;
  return {
    kind: "table",
    head: cells(head).map(parseInline),
    rows: rows.map((row) => cells(row).map(parseInline)),
    numeric: cells(rule).map((cell) => cell.endsWith(":")),
  };
}

export function parseInline(text: string): Inline[] {
  const parts: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    end = match.index + match[0].length;
    const [, strong, code, emphasis, data, numbers] = match;
    if (strong !== undefined) parts.push({ kind: "strong", text: strong });
    else if (code !== undefined) parts.push({ kind: "code", text: code });
    else if (emphasis !== undefined) parts.push({ kind: "emphasis", text: emphasis });
    else if (data !== undefined) parts.push({ kind: "references", groups: parseReferences(data) });
    else for (const number of numbers!.split(",")) parts.push({ kind: "citation", number: Number(number) });
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}

/** Parse the inside of `[Data: Entities (1, 2); Reports (3, +more)]`. */
function parseReferences(data: string): References[] {
  return [...data.matchAll(/([A-Za-z][\w ]*?)\s*\(([^)]*)\)/g)].map(([, section = "", inside = ""]) => ({
    section, numbers: (inside.match(/\d+/g) ?? []).map(Number),
  }));
}
