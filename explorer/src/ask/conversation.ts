/** The questions and answers of one conversation. It outlives the panel that shows it. */

import { createContext } from "preact";
import { type Answer, ApiError, type IndexData, type Question } from "../api";
import { texts } from "../texts";

export interface Turn {
  id: number;
  question: string;
  method: string;
  state: "asking" | "answered" | "failed" | "cancelled";
  /** The message on what the search is doing, such as "Reading 12 reports". */
  status: string;
  /** The text that has arrived so far. */
  text: string;
  answer: Answer | null;
  error: string;
}

export class Conversation {
  turns: readonly Turn[] = [];
  private readonly listeners = new Set<() => void>();
  private controller: AbortController | null = null;
  private lastId = 0;

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  get isAsking(): boolean {
    return this.turns.at(-1)?.state === "asking";
  }

  /** Ask a question, after the questions before it. Does nothing while one is being answered. */
  async ask(data: IndexData, asked: Omit<Question, "conversation">): Promise<void> {
    if (!data.ask || this.isAsking) return;
    const conversation = this.turns.flatMap(({ answer, question }) =>
      // `asked` is the question as the server rewrote it.
      answer ? [{ question, answer: answer.answer, asked: answer.question }] : [],
    );
    const id = ++this.lastId;
    const { question, method } = asked;
    this.turns = [...this.turns, {
      id, question, method, state: "asking", status: "", text: "", answer: null, error: "",
    }];
    this.notify();
    this.controller = new AbortController();
    const { signal } = this.controller;
    const listener = {
      onStatus: (status: string) => this.change(id, { status }),
      onText: (text: string) => this.change(id, { text: (this.find(id)?.text ?? "") + text }),
      onRestart: () => this.change(id, { text: "" }),
    };
    try {
      const answer = await data.ask({ ...asked, conversation }, listener, signal);
      this.change(id, { state: "answered", answer, text: answer.answer });
    } catch (error) {
      if (signal.aborted) this.change(id, { state: "cancelled" });
      else this.change(id, { state: "failed", error: describeError(error) });
    }
  }

  /** Stop the question that is being answered; the server then stops its calls of a model. */
  cancel(): void {
    this.controller?.abort();
  }

  clear(): void {
    this.cancel();
    this.turns = [];
    this.notify();
  }

  private find(id: number): Turn | undefined {
    return this.turns.find((turn) => turn.id === id);
  }

  private change(id: number, change: Partial<Turn>): void {
    this.turns = this.turns.map((turn) => (turn.id === id ? { ...turn, ...change } : turn));
    this.notify();
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The conversation with the index that is shown. */
export const ConversationContext = createContext(new Conversation());

/** Return an error as a sentence for the reader. */
export function describeError(error: unknown): string {
  return error instanceof ApiError ? error.message : texts.errors.unexpected;
}
