/** Entities by the words that a reader types, as `suggest` of the server finds and orders them. */

import type { Entity } from "../api";

/** Spellings of similar consonants, and the letter that replaces them; longer spellings first. */
const SIMILAR: [RegExp, string][] = [
  [/tsch|tch|sch|sh|ch|z/g, "s"], [/ph|v|w/g, "f"], [/ck|c|q/g, "k"], [/x/g, "ks"], [/dt|th|d/g, "t"],
];
const MIN_FUZZY_LENGTH = 5;

/** The entities with a name that has all words: this name first, then those with most relationships. */
export function findNames<Row extends Entity>(rows: readonly Row[], typed: readonly string[], limit: number): Row[] {
  const names = rows.map((row) => ({ row, names: [row.title, ...row.aliases].map(splitWords) }));
  const known = new Set(names.flatMap((one) => one.names.flat()));
  const wanted = typed.map((word) => {
    const begun = [...known].filter((other) => other.startsWith(word));
    return new Set(begun.length ? begun : findOtherSpellings(word, known));
  });
  const text = typed.join(" ");
  return names
    .filter((one) => wanted.every((words) => one.names.flat().some((word) => words.has(word))))
    .map((one) => ({ row: one.row, isExact: one.names.some((words) => words.join(" ") === text) }))
    .sort((a, b) => Number(b.isExact) - Number(a.isExact) || b.row.degree - a.row.degree || a.row.number - b.row.number)
    .slice(0, limit)
    .map(({ row }) => row);
}

/** Compare texts without regard to case and accents. */
export function fold(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}|\p{Cf}/gu, "").toLowerCase().trim();
}

export function splitWords(text: string): string[] {
  return fold(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

function findOtherSpellings(asked: string, known: ReadonlySet<string>): string[] {
  if (asked.length < MIN_FUZZY_LENGTH) return [];
  const sound = soundOf(asked);
  const found = [...known].map((word) => ({ word, distance: distanceOf(asked, word), heard: soundOf(word) }))
    .filter(({ word, distance, heard }) => isOtherSpelling(asked, word, distance, Boolean(sound) && sound === heard));
  const nearest = Math.min(...found.map(({ distance }) => distance));
  return found.filter(({ distance }) => distance === nearest).map(({ word }) => word);
}

function isOtherSpelling(asked: string, known: string, distance: number, sameSound: boolean): boolean {
  const longest = Math.max(asked.length, known.length);
  const endsInVowel = (word: string) => /[aeiouy]$/.test(word);
  if (sameSound) {
    return endsInVowel(asked) === endsInVowel(known) && distance <= (longest < 9 ? 1 : longest < 10 ? 2 : 3);
  }
  return longest >= 8 && distance <= 1 && asked.slice(0, 3) === known.slice(0, 3) && asked.at(-1) === known.at(-1);
}

/** The consonants of a Latin word; similar ones are equal, and "A" is a vowel at the start. */
function soundOf(word: string): string {
  if (!/^[a-z]{4,}$/.test(word)) return "";
  const plain = SIMILAR.reduce((text, [written, letter]) => text.replace(written, letter), word);
  const heard = plain.replace(/^[aeiouyhj]+/, "A").replace(/[aeiouyhj]+/g, "").replace(/(.)\1+/g, "$1");
  return heard.length > 1 ? heard : "";
}

/** The optimal string alignment distance: letters replaced, left out, added, or exchanged. */
function distanceOf(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}
