/** The conversations that are kept: the name and the sharing of the open one, and the list of all. */

import { useState } from "preact/hooks";
import { save } from "../graph/exportView";
import { Menu } from "../parts/Menu";
import { SearchField } from "../parts/PagedList";
import { useData } from "../parts/useData";
import { EMPTY_ADDRESS, formatAddress, useAddress } from "../state";
import { texts } from "../texts";
import { useConversation } from "./conversation";
import { writeHtml, writeMarkdown } from "./conversationFile";
import { forget, listKept, writeLink } from "./kept";

type Form = keyof typeof texts.conversations.forms;

/** The name of the open conversation, which can be changed, and what can be done with all of it. */
export function ConversationHead() {
  const conversation = useConversation();
  const { address: { index }, go } = useAddress();
  const [said, say] = useState("");
  const { id, name, notice, isShared, turns } = conversation;
  const share = async (form: Form) => {
    say("");
    if (form === "markdown") return save(writeMarkdown(name, turns), "text/markdown", "conversation.md");
    if (form === "html") return save(writeHtml(name, turns), "text/html", "conversation.html");
    const packed = await writeLink({ id, name, turns, isShared, changed: 0 });
    if (packed === null) return say(texts.conversations.tooLong);
    const link = new URL(formatAddress({ ...EMPTY_ADDRESS, index, conversation: packed }), location.href).href;
    // A browser offers the clipboard only to pages of this computer and over HTTPS.
    if (navigator.clipboard) await navigator.clipboard.writeText(link).then(() => say(texts.conversations.copied));
    else prompt(texts.conversations.copyThis, link);
  };
  return (
    <div class="panel-tools conversation-head">
      {turns.length > 0 && (
        <div class="tools">
          <input key={id} value={name} maxLength={200} dir="auto" aria-label={texts.conversations.name}
            onChange={({ currentTarget }) => conversation.rename(currentTarget.value)} />
          <Menu class="share" button={texts.conversations.share}>
            {(Object.keys(texts.conversations.forms) as Form[]).map((form) => (
              <button key={form} type="button" class="plain" onClick={() => void share(form)}>{texts.conversations.forms[form]}</button>
            ))}
          </Menu>
          <button type="button" aria-label={texts.ask.clear} title={texts.ask.clear}
            onClick={() => { conversation.clear(); say(""); go({ question: "", conversation: "" }); }}>{texts.ask.newShort}</button>
        </div>
      )}
      {isShared && <p class="muted">{texts.conversations.shared}</p>}
      <p role="status" class="muted">{said || notice}</p>
    </div>
  );
}

/** The list of the kept conversations, searched by their names, questions and answers. */
export function ConversationsPanel() {
  const { summary } = useData();
  const { href } = useAddress();
  const conversation = useConversation();
  const [search, setSearch] = useState("");
  const [, setForgotten] = useState("");
  const kept = listKept(summary.name);
  const found = kept.filter(({ name, turns }) => [name, ...turns.flatMap(({ question, text }) => [question, text])]
    .join("\n").toLowerCase().includes(search.toLowerCase()));
  const remove = (id: string) => {
    forget(summary.name, id);
    if (id === conversation.id) conversation.clear();
    setForgotten(id);
  };
  return (
    <div class="panel-body">
      <p class="muted">{texts.conversations.explained}</p>
      <SearchField value={search} onChange={setSearch} label={texts.conversations.search} />
      <ul class="list">
        {found.map(({ id, name, turns, changed }) => (
          <li key={id} class="version">
            <a class="passage" aria-current={id === conversation.id ? "true" : undefined}
              href={href({ panel: "ask", question: "", conversation: id })}>
              <span dir="auto">{name}</span>
              <span class="row-note">{texts.conversations.size(turns.length, new Date(changed))}</span>
            </a>
            <button type="button" class="plain" aria-label={texts.conversations.remove(name)} onClick={() => remove(id)}>
              {texts.documents.delete}
            </button>
          </li>
        ))}
      </ul>
      {!found.length && <p class="muted">{texts.none}</p>}
    </div>
  );
}
