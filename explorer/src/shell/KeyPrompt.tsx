/** The form that asks for a key. The key stays in this tab, and goes with each request. */

import { useState } from "preact/hooks";
import { texts } from "../texts";

export function KeyPrompt({ isWrong, onEnter }: { isWrong: boolean; onEnter: (key: string) => void }) {
  const [key, setKey] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (key.trim()) onEnter(key.trim());
  };
  return (
    <main class="message">
      <form class="key-form" onSubmit={submit}>
        <h1>{texts.key.title}</h1>
        <p>{texts.key.explained}</p>
        {isWrong && <p class="failure" role="alert">{texts.key.wrong}</p>}
        <label class="field">
          <span>{texts.key.label}</span>
          <input type="password" value={key} autocomplete="off" spellcheck={false} autofocus
            aria-invalid={isWrong} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={!key.trim()}>{texts.key.enter}</button>
      </form>
    </main>
  );
}
