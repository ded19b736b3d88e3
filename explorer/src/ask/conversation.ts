/** The questions and answers of one conversation, which outlives the panel that shows it; asking from anywhere. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { IndexData, Question } from "../api";
import { Observed, useObserved } from "../parts/Observed";
import { describeError, useData } from "../parts/useData";
import { hasFilters, isInGraph, useAddress } from "../state";
import { texts } from "../texts";
import { keep, listKept, readLink, type Turn } from "./kept";

const newId = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 7);

export class Conversation extends Observed {
  turns: readonly Turn[] = [];
  /** The name in the address and in the storage. */
  id = newId();
  name = "";
  isShared = false;
  /** What the reader should know about the keeping of conversations. */
  notice = "";
  /** The newest answer of each column that stands beside others. */
  readonly columns = new Map<string, Conversation>();
  private controller: AbortController | null = null;
  private lastId = 0;
  private lastOpening = 0;

  /** A conversation is kept for its index; without one it is not kept. */
  constructor(private readonly index = "") { super(); }

  get isAsking(): boolean { return this.turns.at(-1)?.state === "asking"; }

  /** Ask a question, after the questions before it. Does nothing while one is being answered. */
  async ask(data: IndexData, asked: Omit<Question, "conversation">): Promise<void> {
    if (!data.ask || this.isAsking) return;
    const conversation = this.turns.flatMap(({ answer, question }) =>
      // `asked` is the question as the server rewrote it.
      answer ? [{ question, answer: answer.answer, asked: answer.question }] : [],
    );
    const id = ++this.lastId;
    const { question, method } = asked;
    this.name ||= question.slice(0, 200);
    this.turns = [...this.turns, {
      id, question, method, state: "asking", status: "", text: "", answer: null, error: "", verdict: "",
      filters: hasFilters(asked.filters) ? JSON.stringify(asked.filters) : "",
    }];
    this.save();
    this.controller = new AbortController();
    const { signal } = this.controller;
    const listener = {
      onStatus: (status: string) => this.change(id, { status }),
      onText: (text: string) => this.change(id, { text: (this.turns.at(-1)?.text ?? "") + text }),
      onRestart: () => this.change(id, { text: "" }),
    };
    try {
      const answer = await data.ask({ ...asked, conversation }, listener, signal);
      this.settle(id, { state: "answered", answer, text: answer.answer });
    } catch (error) {
      this.settle(id, signal.aborted ? { state: "cancelled" } : { state: "failed", error: describeError(error) });
    }
  }

  /** Stop the question that is being answered; the server then stops its calls of a model. */
  cancel(): void { this.controller?.abort(); }

  /** Begin a new conversation; the one before stays kept. */
  clear(): void {
    this.cancel();
    Object.assign(this, { turns: [], id: newId(), name: "", isShared: false, notice: "" });
    this.notify();
  }

  /** Open a kept conversation, or the one that a link carries; return the id of what is open then. */
  async open(address: string): Promise<string> {
    const isLink = address.startsWith("~");
    const opening = ++this.lastOpening;
    const found = isLink ? await readLink(address) : listKept(this.index).find(({ id }) => id === address);
    // Another one may have been opened while a link was read.
    if (opening !== this.lastOpening || (!found && !isLink)) return this.id;
    this.clear();
    const turns = found?.turns.map((turn) => ({ ...turn, id: ++this.lastId })) ?? [];
    Object.assign(this, found, { id: found?.id || this.id, turns, notice: found ? "" : texts.conversations.damaged });
    this.save();
    return this.id;
  }

  rename(name: string): void {
    this.name = name.trim() || this.name;
    this.save();
  }

  /** Change a turn whose answer is complete, and keep that. */
  settle(id: number, change: Partial<Turn>): void {
    this.change(id, change);
    if (this.turns.some((turn) => turn.id === id)) this.save();
  }

  private save(): void {
    const { id, index, name, isShared, turns } = this;
    if (index && turns.length) this.notice = keep(index, { id, name, isShared, turns, changed: Date.now() }) || this.notice;
    this.notify();
  }

  private change(id: number, change: Partial<Turn>): void {
    this.turns = this.turns.map((turn) => (turn.id === id ? { ...turn, ...change } : turn));
    this.notify();
  }
}

/** The conversation with the index that is shown. */
export const ConversationContext = createContext(new Conversation());

/** Return the conversation, and draw again when it changes. */
export function useConversation(): Conversation {
  const conversation = useContext(ConversationContext);
  useObserved([conversation]);
  return conversation;
}

/** Ask a question; `names` are further names for the searches path and neighbourhood. */
export type Ask = (question: string, method?: string, names?: string[]) => void;

/** Return a function that asks a question, and shows the conversation. */
export function useAsk(): Ask {
  const conversation = useContext(ConversationContext);
  const { address, go } = useAddress();
  const { data } = useData();
  return (question, method = address.method, names) => {
    // The address keeps the search that the reader chose: one that was suggested is for once.
    const { filters, version, selection } = address;
    // The graph shows what the answer rests on in place of what was selected; a text stays open beside it.
    go({ panel: "ask", question, conversation: conversation.id, ...(isInGraph(selection) ? { selection: null } : {}) });
    void conversation.ask(data, { question, method, ...(names ? { names } : {}), filters, version });
  };
}
