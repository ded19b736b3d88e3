/** Files on their way to the server, one after the other. They go on while another panel is shown. */

import { Observed } from "../parts/Observed";

/** The file that is being sent, in bytes; all bytes are sent while the server checks the file. */
export interface Sending { name: string; sent: number; size: number; nWaiting: number }
/** A file that was not stored; `error` is a sentence, or what the server answered. */
export interface Refused { file: File; error: unknown }

export class UploadQueue extends Observed {
  sending: Sending | null = null;
  refused: readonly Refused[] = [];
  nStored = 0;
  nCancelled = 0;
  /** How often the queue has come to its end. */
  nEnds = 0;
  private waiting: { file: File; replace: boolean }[] = [];
  private controller = new AbortController();

  /** `send` stores one file; without `replace`, a file of the same name is an error. */
  constructor(private readonly send: (
    file: File, replace: boolean, onProgress: (sent: number) => void, signal: AbortSignal,
  ) => Promise<void>) { super(); }

  /** Send files after those that wait; `check` returns why a file would be refused, or "". */
  async add(files: readonly File[], replace: boolean, check: (file: File) => string): Promise<void> {
    if (!this.sending) {
      this.controller = new AbortController();
      this.refused = [];
      this.nStored = this.nCancelled = 0;
    }
    for (const file of files) {
      const error = check(file);
      if (error) this.refused = [...this.refused, { file, error }];
      else this.waiting.push({ file, replace });
    }
    if (this.sending) this.note({ ...this.sending, nWaiting: this.waiting.length });
    else await this.sendAll();
  }

  /** Stop the file that is being sent, and forget those that wait. */
  cancel(): void {
    this.nCancelled += this.waiting.length;
    this.waiting = [];
    this.controller.abort();
  }

  /** Forget files that were refused. */
  forget(refused: readonly Refused[]): void {
    this.refused = this.refused.filter((one) => !refused.includes(one));
    this.note(this.sending);
  }

  private async sendAll(): Promise<void> {
    const { signal } = this.controller;
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const { file, replace } = next;
      const progress = (sent: number) =>
        this.note({ name: file.name, sent: Math.min(sent, file.size), size: file.size, nWaiting: this.waiting.length });
      progress(0);
      try {
        await this.send(file, replace, progress, signal);
        this.nStored += 1;
      } catch (error) {
        if (signal.aborted) this.nCancelled += 1;
        else this.refused = [...this.refused, { file, error }];
      }
    }
    this.nEnds += 1;
    this.note(null);
  }

  private note(sending: Sending | null): void {
    this.sending = sending;
    this.notify();
  }
}
