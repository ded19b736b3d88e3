/** The panel of questions: a conversation, and the field for the next question. */

import { useEffect, useRef, useState } from "preact/hooks";
import { FilterNotice } from "../find/FilterPanel";
import { useData, useLoaded } from "../parts/useData";
import { parseAddress, useAddress } from "../state";
import { texts } from "../texts";
import { type Ask, useAsk, useConversation } from "./conversation";
import { ConversationHead } from "./Conversations";
import { listKept } from "./kept";
import { TurnView } from "./TurnView";

export function AskPanel() {
  const { address, go } = useAddress();
  const conversation = useConversation();
  const { turns } = conversation;
  const ask = useAsk();
  const body = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  useEffect(() => {
    // A question and its answer are shown from their beginning; "back" leads to earlier ones.
    const at = turns.map((turn) => turn.question).lastIndexOf(address.question);
    body.current?.querySelectorAll(".turn")[at]?.scrollIntoView({ block: "start" });
  }, [address.question, last?.id, last?.state]);
  useEffect(() => {
    const { conversation: wanted } = address;
    if (!wanted || wanted === conversation.id) return;
    let isWanted = true;
    // What a link carries becomes a conversation of this reader. The event of a newer address may still be on its way.
    void conversation.open(wanted)
      .then((id) => { if (isWanted && parseAddress(location.hash).conversation === wanted) go({ conversation: id }, true); });
    return () => { isWanted = false; };
  }, [address.conversation, conversation]);
  return (
    <>
      <ConversationHead />
      <div class="panel-body conversation" ref={body}>
        {turns.length === 0 && <Welcome ask={ask} />}
        {turns.map((turn) => <TurnView key={turn.id} turn={turn} ask={ask} isLast={turn === last} />)}
      </div>
      <div class="panel-foot">
        <FilterNotice />
        <QuestionForm ask={ask} />
      </div>
    </>
  );
}

/** What stands here before the first question: what the index holds, and what one may ask. */
function Welcome({ ask }: { ask: Ask }) {
  const { data, summary } = useData();
  const { href } = useAddress();
  const nKept = listKept(summary.name).length;
  const { documents = 0, entities = 0, relationships = 0 } = summary.tables;
  const reports = summary.tables.community_reports ?? 0;
  // "How are thirty pupils and vaccination cards connected?" is no question that anybody has; names without a path have no answer.
  const [first, second] = useLoaded(async (signal) => {
    const [main, ...others] = (await data.page("entities", { limit: 50 }, signal)).items.filter(({ type }) => type !== "noun phrase");
    const linked = main ? (await data.relationshipsOf(main.number, null, signal)).items.map(({ source, target }) => source + target - main.number) : [];
    return [main, others.find(({ number }) => linked.includes(number))];
  }, [summary.name]).value ?? [];
  const examples = [
    ...(reports ? [texts.ask.themes] : []), texts.ask.named,
    ...(first ? [texts.ask.about(first.title)] : []),
    ...(first && second ? [texts.ask.connected(first.title, second.title)] : []),
  ];
  return (
    <div class="welcome">
      <h2>{texts.ask.welcome}</h2>
      <p>{texts.ask.holds(documents, entities, relationships, reports)}</p>
      <ul class="suggestions">
        {examples.map((question) => (
          <li key={question}><button type="button" onClick={() => ask(question, "ask")}>{question}</button></li>
        ))}
      </ul>
      {nKept > 0 && <p><a href={href({ panel: "conversations" })}>{texts.conversations.earlier(nKept)}</a></p>}
    </div>
  );
}

/** The choice of a search. */
export function SearchSelect({ value, onChange }: { value: string; onChange: (method: string) => void }) {
  const { summary } = useData();
  return (
    <select aria-label={texts.ask.method} value={value} title={texts.methods[value]?.[1]}
      onChange={(event) => onChange(event.currentTarget.value)}>
      {["ask", ...summary.methods.filter((method) => method !== "ask")].map((method) => (
        <option key={method} value={method}>{texts.methods[method]?.[0] ?? method}</option>
      ))}
    </select>
  );
}

function QuestionForm({ ask }: { ask: Ask }) {
  const conversation = useConversation();
  const { address, go } = useAddress();
  const [text, setText] = useState(address.question);
  const field = useRef<HTMLTextAreaElement>(null);
  const { turns, isAsking } = conversation;
  useEffect(() => {
    // A question from a link waits here: asking may cost money, so a link alone never asks.
    const isAsked = turns.some((turn) => turn.question === address.question);
    setText(isAsked ? "" : address.question);
  }, [address.question]);
  const submit = () => {
    if (!text.trim() || isAsking) return;
    ask(text.trim());
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter ends the word of an input method first, for example in Japanese.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form class="question" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <textarea ref={field} rows={2} value={text} maxLength={20000} dir="auto"
        placeholder={turns.length ? texts.ask.next : texts.ask.placeholder} aria-label={texts.ask.label}
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
      <div class="question-tools">
        <SearchSelect value={address.method} onChange={(method) => go({ method }, true)} />
        <button type="button" onClick={() => go({
          question: text.trim() || address.question, beside: [address.method, address.method === "basic" ? "local" : "basic"],
        })}>{texts.beside.title}</button>
        <span class="grow" />
        {isAsking
          ? <button type="button" onClick={() => conversation.cancel()}>{texts.ask.cancel}</button>
          : <button type="submit" class="primary" disabled={!text.trim()}>{texts.ask.send}</button>}
      </div>
    </form>
  );
}
