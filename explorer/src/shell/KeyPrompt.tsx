/** The form that asks for a key. The key stays in this tab, and goes with each request. */

import { useState } from "preact/hooks";
import { texts } from "../texts";

interface KeyPromptProps {
  /** Why the last key was refused; empty if there was none. */
  problem: string;
  onEnter: (key: string) => void;
}

export function KeyPrompt({ problem, onEnter }: KeyPromptProps) {
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
        {problem && <p class="failure" role="alert">{problem}</p>}
        <label class="field">
          <span>{texts.key.label}</span>
          <input type="password" value={key} autocomplete="off" spellcheck={false} autofocus
            aria-invalid={Boolean(problem)} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={!key.trim()}>{texts.key.enter}</button>
      </form>
    </main>
  );
}
