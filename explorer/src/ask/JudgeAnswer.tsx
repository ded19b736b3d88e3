/** A thumb up or down for an answer, with a reason, which the server keeps for evaluations. */

import { useContext, useState } from "preact/hooks";
import { useAction } from "../manage/useManagement";
import { Failure } from "../parts/Loading";
import { useData } from "../parts/useData";
import { texts } from "../texts";
import { ConversationContext } from "./conversation";
import type { Turn } from "./kept";

const THUMB = "M2 9h3v9H2zM7 18V9l4-7c1.5 0 2.2 1 2 2.5L12.4 8H17c1 0 1.7.9 1.4 1.9l-2 7c-.2.7-.7 1.1-1.4 1.1z";
const show = (field: HTMLElement | null) => { field?.focus(); field?.scrollIntoView({ block: "center" }); };

/** Readers whose key may not write see nothing, and so do those of a search that failed. */
export function JudgeAnswer({ turn }: { turn: Turn }) {
  const { manage, summary } = useData();
  const conversation = useContext(ConversationContext);
  const { act, isBusy, error } = useAction();
  const [chosen, choose] = useState<"up" | "down" | null>(null);
  const [reason, setReason] = useState("");
  const { answer, filters, verdict: kept } = turn;
  if (!answer || !manage || !summary.scopes.includes("index") || !["answered", "no_evidence"].includes(answer.outcome)) return null;
  const send = (verdict: "up" | "down" | "withdrawn") => act(async () => {
    const { question, method, parameters, version, outcome, answer: text, citations } = answer;
    const judged = { question, method, parameters, version, outcome, answer: text, citations };
    await manage.judge({ ...judged, verdict, reason, filters: filters ? JSON.parse(filters) : {} });
    conversation.settle(turn.id, { verdict: verdict === "withdrawn" ? "" : verdict });
    choose(null);
    setReason("");
  });
  return (
    <div class="judge" role="group" aria-label={texts.judge.label}>
      {(["up", "down"] as const).map((verdict) => (
        <button key={verdict} type="button" class={`icon ${verdict}`} aria-pressed={(chosen ?? kept) === verdict}
          disabled={isBusy} aria-label={texts.judge[verdict]} title={texts.judge[verdict]}
          onClick={() => (kept === verdict ? void send("withdrawn") : choose(chosen === verdict ? null : verdict))}>
          <svg viewBox="0 0 20 20" width="18" aria-hidden="true"><path d={THUMB} /></svg>
        </button>
      ))}
      <span role="status" class="muted">{kept && !chosen && texts.judge.kept}</span>
      {chosen && (
        <form onSubmit={(event) => { event.preventDefault(); void send(chosen); }}>
          <input value={reason} maxLength={5000} dir="auto" ref={show} aria-label={texts.judge.reason} placeholder={texts.judge.reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)} />
          <button type="submit" disabled={isBusy}>{texts.judge.keep}</button>
        </form>
      )}
      {error !== null && <Failure error={error} />}
    </div>
  );
}
