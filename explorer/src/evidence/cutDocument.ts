/** The text of a document cut into pieces: labels of text units, names of entities, marked text. */

import type { DocumentText } from "../api";
import type { Selection } from "../state";

export interface Piece {
  text: string;
  isMarked: boolean;
  /** The entity that the piece names. */
  entity?: number;
  /** The text unit that begins here; such a piece has no text. */
  textUnit?: number;
}

/** Cut a part of a document at its text units, its names, and the ends of the marked span. */
export function cutDocument(part: DocumentText, span: Selection["span"]): Piece[] {
  // Offsets count code points, and characters of JavaScript are UTF-16 units.
  const points = Array.from(part.text);
  const { start_char: first, end_char: last } = part;
  const mentions = withoutOverlaps(part.mentions);
  const units = part.text_units.filter((unit) => unit.start_char >= first);
  const ends = [
    first, last, ...units.map((unit) => unit.start_char), ...(span ? [span.start, span.end] : []),
    ...mentions.flatMap(({ start_char, end_char }) => [start_char, end_char]),
  ].filter((end) => end >= first && end <= last);
  const borders = [...new Set(ends)].sort((a, b) => a - b);
  const unitAt = new Map(units.map((unit) => [unit.start_char, unit.number]));
  const pieces: Piece[] = [];
  let next = 0;
  borders.forEach((start, at) => {
    const unit = unitAt.get(start);
    if (unit !== undefined) pieces.push({ text: "", isMarked: false, textUnit: unit });
    const end = borders[at + 1];
    if (end === undefined) return;
    while (next < mentions.length && mentions[next]!.end_char <= start) next++;
    const mention = mentions[next];
    pieces.push({
      text: points.slice(start - first, end - first).join(""),
      isMarked: Boolean(span && start >= span.start && end <= span.end),
      ...(mention && mention.start_char <= start ? { entity: mention.entity } : {}),
    });
  });
  return pieces;
}

/** Keep the longest of the mentions that overlap; the result is in the order of the text. */
function withoutOverlaps(mentions: DocumentText["mentions"]): DocumentText["mentions"] {
  const sorted = [...mentions].sort((a, b) => a.start_char - b.start_char || b.end_char - a.end_char);
  let end = -1;
  return sorted.filter((mention) => {
    if (mention.start_char < end) return false;
    end = mention.end_char;
    return true;
  });
}
