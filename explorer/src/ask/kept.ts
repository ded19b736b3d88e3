/** Conversations that the browser keeps for each index, and those that a link carries. */

import type { Answer } from "../api";
import { attempt } from "../session";
import { texts } from "../texts";

export interface Turn {
  id: number;
  question: string;
  method: string;
  /** The filters of the question as JSON; empty without. */
  filters: string;
  state: "asking" | "answered" | "failed" | "cancelled";
  /** The message on what the search is doing, such as "Reading 12 reports". */
  status: string;
  /** The text that has arrived so far. */
  text: string;
  answer: Answer | null;
  error: string;
  /** The verdict of the reader that the server has kept. */
  verdict: string;
}

export interface KeptConversation {
  id: string; name: string; turns: readonly Turn[];
  /** The time of the last change, in milliseconds. */
  changed: number;
  /** Whether it came with a link, so that its answers may not be those of this server. */
  isShared: boolean;
}

// Characters that are kept for one index: a browser gives all pages of a server about five million.
const MAX_KEPT = 1_500_000;
// Longer links break in mails and chats; what one unpacks to must not drive out the reader's own conversations.
const MAX_LINK = 8_000, MAX_UNPACKED = 200_000;

const CITATION = { number: 0, document: "", document_id: "", path: "", start_char: 0, end_char: 0, quote: "", text_unit: 0, cited_as: "", location: "" };
const ANSWER: Answer = {
  answer: "", question: "", method: "", version: 0, outcome: "answered", parameters: {}, looked_at: {}, citations: [CITATION],
  usage: { calls: 0, prompt_tokens: 0, completion_tokens: 0, cost: null, seconds: 0 },
  notes: [""], follow_ups: [""], left_out: [0], suggestion: null, table: [{}],
};
const TURN: Turn = { id: 0, question: "", method: "ask", filters: "", state: "answered", status: "", text: "", answer: null, error: "", verdict: "" };
const EMPTY: KeptConversation = { id: "", name: "", turns: [], changed: 0, isShared: false };

/** Return a value in the form of a sample; a part of another form becomes that of the sample. */
function conform<T>(sample: T, value: unknown): T {
  if (Array.isArray(sample)) return (Array.isArray(value) ? value.map((item) => conform(sample[0], item)) : []) as T;
  if (sample === null) return (typeof value === "object" ? null : value) as T;
  if (typeof sample !== "object") return typeof value === typeof sample ? value as T : sample;
  const [form, found] = [sample, value ?? {}] as [Record<string, unknown>, Record<string, unknown>];
  const keys = Object.keys(Object.keys(form).length ? form : found);
  return Object.fromEntries(keys.map((key) => [key, conform(form[key] ?? null, found[key])])) as T;
}

/** Return a conversation in the form in which it is kept: without the rows that the searches have read. */
function conformConversation(value: unknown): KeptConversation {
  const turns = ((value as KeptConversation | null)?.turns ?? []).map((turn) => ({
    ...conform(TURN, turn), answer: turn?.answer ? conform(ANSWER, turn.answer) : null,
    ...(turn?.state === "asking" ? { state: "cancelled" as const } : {}),
  }));
  return { ...conform(EMPTY, value), turns };
}

const prefixOf = (index: string) => `graphrag-conversation/${encodeURIComponent(index)}/`;

/** Return the stored texts of an index with their conversations, the last changed first. */
function readStored(index: string): { key: string; size: number; kept: KeptConversation }[] {
  const keys = attempt(() => Object.keys(localStorage)) ?? [];
  return keys.filter((key) => key.startsWith(prefixOf(index))).flatMap((key) => {
    const text = localStorage.getItem(key) ?? "";
    const kept = attempt(() => conformConversation(JSON.parse(text)));
    return kept ? [{ key, size: text.length, kept }] : [];
  }).sort((one, other) => other.kept.changed - one.kept.changed);
}

export const listKept = (index: string) => readStored(index).map(({ kept }) => kept);
export const forget = (index: string, id: string) => localStorage.removeItem(prefixOf(index) + id);

/** Keep a conversation, for which the oldest others may have to go; return a sentence if the reader should know. */
export function keep(index: string, conversation: KeptConversation): string {
  const name = prefixOf(index) + conversation.id, text = JSON.stringify(conformConversation(conversation));
  const others = readStored(index).filter(({ key }) => key !== name);
  for (let nDropped = 0; ; nDropped += 1) {
    const isFull = others.reduce((sum, { size }) => sum + size, text.length) > MAX_KEPT;
    const isKept = (!isFull || !others.length) && attempt(() => { localStorage.setItem(name, text); return true; });
    if (isKept) return nDropped ? texts.conversations.dropped(nDropped) : "";
    const oldest = others.pop();
    if (!oldest) return texts.conversations.notKept;
    localStorage.removeItem(oldest.key);
  }
}

const convert = (bytes: BlobPart, stream: CompressionStream | DecompressionStream) =>
  new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

/** Pack a conversation for a link; null if it is too long for one. */
export async function writeLink(conversation: KeptConversation): Promise<string | null> {
  const { name, turns } = conformConversation(conversation);
  const short = turns.map((turn) => ({ ...turn, verdict: "", answer: turn.answer && { ...turn.answer, parameters: {} } }));
  const bytes = new Uint8Array(await convert(JSON.stringify({ name, turns: short }), new CompressionStream("deflate-raw")));
  if (bytes.length > MAX_LINK * 3 / 4) return null;
  return `~${btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`;
}

/** Unpack the conversation of a link; null if the link is damaged, or longer than any that is made here. */
export async function readLink(link: string): Promise<KeptConversation | null> {
  try {
    if (link.length > MAX_LINK + 9) return null;
    const packed = atob(link.slice(1).replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const text = new TextDecoder().decode(await convert(bytes, new DecompressionStream("deflate-raw")));
    const found = conformConversation(JSON.parse(text));
    return found.turns.length && JSON.stringify(found).length < MAX_UNPACKED ? { ...found, id: "", isShared: true } : null;
  } catch { return null; }
}
