/** Text with a little Markdown. Everything becomes text nodes: documents are not trusted. */

import { createContext, Fragment, type ComponentChildren, type VNode } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import type { Kind } from "../state";
import { texts } from "../texts";
import { useLink } from "./Link";
import { type Block, type Inline, parseInline, parseMarkdown, type References } from "./parseMarkdown";

/** Draw the citation [number] of an answer. */
export type DrawCitation = (number: number) => ComponentChildren;

/** Sections of a prompt in small letters, and the kind of thing that a number in them means. */
export const SECTION_KINDS: Record<string, Kind> = {
  entities: "entity", relationships: "relationship", reports: "community", sources: "text_unit",
  "text units": "text_unit",
};

/** Titles of documents by their passages, by which a text refers to these; without a title it does by number. */
export const PassageTitles = createContext<ReadonlyMap<number, string>>(new Map());

export function FormattedText({ text, citation }: { text: string; citation?: DrawCitation }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return <div class="formatted" dir="auto">{drawBlocks(blocks, citation)}</div>;
}

function drawBlocks(blocks: Block[], citation?: DrawCitation): VNode[] {
  return blocks.map((block, at) => <Fragment key={at}>{drawBlock(block, citation)}</Fragment>);
}

function drawBlock(block: Block, citation?: DrawCitation): VNode {
  switch (block.kind) {
    case "heading": {
      // A text stands below a heading of the second level.
      const Heading = block.level <= 2 ? "h3" : "h4";
      return <Heading>{drawInline(block.content, citation)}</Heading>;
    }
    case "paragraph":
      return <p>{drawInline(block.content, citation)}</p>;
    case "quote":
      return <blockquote>{drawInline(block.content, citation)}</blockquote>;
    case "list": {
      const items = block.items.map((item, at) => <li key={at}>{drawItem(item, citation)}</li>);
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <table>
          <thead>
            <tr>{block.head.map((cell, at) => (
              <th key={at} scope="col" class={block.numeric[at] ? "number" : ""}>{drawInline(cell, citation)}</th>
            ))}</tr>
          </thead>
          <tbody>{block.rows.map((row, at) => (
            <tr key={at}>{row.map((cell, column) => (
              <td key={column} class={block.numeric[column] ? "number" : ""}>{drawInline(cell, citation)}</td>
            ))}</tr>
          ))}</tbody>
        </table>
      );
  }
}

/** The first paragraph of a list item stays on the line of its marker. */
function drawItem(blocks: Block[], citation?: DrawCitation): ComponentChildren {
  const [first, ...others] = blocks;
  if (first?.kind !== "paragraph") return drawBlocks(blocks, citation);
  return <>{drawInline(first.content, citation)}{drawBlocks(others, citation)}</>;
}

function drawInline(parts: Inline[], citation?: DrawCitation): VNode[] {
  return parts.map((part, at) => {
    switch (part.kind) {
      case "text": return <Fragment key={at}>{part.text}</Fragment>;
      case "strong": return <strong key={at}>{drawInline(parseInline(part.text), citation)}</strong>;
      case "emphasis": return <em key={at}>{part.text}</em>;
      case "code": return <code key={at}>{part.text}</code>;
      case "citation":
        return <Fragment key={at}>{citation ? citation(part.number) : `[${part.number}]`}</Fragment>;
      case "references": return <ReferenceLinks key={at} groups={part.groups} />;
    }
  });
}

/** Passages and reports that a text refers to, and its other rows on demand. */
function ReferenceLinks({ groups }: { groups: References[] }) {
  const [isOpen, setOpen] = useState(false);
  const rows = groups.flatMap(({ section, numbers }) => {
    const kind = SECTION_KINDS[section.toLowerCase()];
    return kind ? numbers.map((number) => ({ kind, number })) : [];
  });
  const main = rows.filter(({ kind }) => kind === "text_unit" || kind === "community").slice(0, 3);
  const shown = isOpen || !main.length && rows.length <= 3 ? rows : main;
  const hidden = rows.length - shown.length;
  return (
    <span class="references">
      {shown.map((row) => <ReferenceLink key={`${row.kind}${row.number}`} {...row} />)}
      {hidden > 0 && (
        <button type="button" class="reference" aria-label={texts.showReferences(hidden)}
          title={texts.showReferences(hidden)} onClick={() => setOpen(true)}>
          +{hidden}
        </button>
      )}
    </span>
  );
}

function ReferenceLink({ kind, number }: { kind: Kind; number: number }) {
  const title = useContext(PassageTitles).get(kind === "text_unit" ? number : -1);
  const about = [title, texts.reference(kind, number)].filter(Boolean).join(" · ");
  return (
    <a class="reference" {...useLink(kind, number)} title={about} dir="auto">
      {title ?? texts.referenceMark(kind, number)}
    </a>
  );
}
