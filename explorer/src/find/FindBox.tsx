/** Fields that find names, reports and passages as one types: that of the page, and those that choose an entity. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Entity, filterQuery, type IndexData, type Query } from "../api";
import { Line } from "../parts/Link";
import { useAbortedEffect, useData } from "../parts/useData";
import { type Selection, useAddress } from "../state";
import { texts } from "../texts";

const MAX_CHOICES = 8;

export function FindBox() {
  const { data } = useData();
  const { address, go } = useAddress();
  const query = { ...filterQuery(address.filters), limit: MAX_CHOICES };
  const show = (selection: Selection) => go({ selection });
  return (
    <Combobox class="find" label={texts.find.label} placeholder={texts.find.placeholder} shortcut="/"
      find={(text, signal) => findChoices(data, text, query, show, signal)}
      onSubmit={(search) => go({ panel: "browse", search })} />
  );
}

async function findChoices(
  data: IndexData, text: string, query: Query, show: (selection: Selection) => void, signal: AbortSignal,
): Promise<Choice[]> {
  const { entities, communities, text_units } = await data.suggest(text, query, signal);
  const groups = texts.tables;
  return [
    ...entities.map(({ number, title, type }) =>
      choiceOf(groups.entities, number, title, type, () => show({ kind: "entity", number }))),
    ...communities.map(({ community: number, title, level }) =>
      choiceOf(groups.reports, number, title, texts.level(level), () => show({ kind: "community", number }))),
    // A passage is shown from what was looked for.
    ...text_units.map(({ number, text: unit, document_title }) =>
      choiceOf(groups.text_units, number, unit.slice(Math.max(0, unit.toLowerCase().indexOf(text.toLowerCase()))).slice(0, 160), document_title, () => show({ kind: "text_unit", number }))),
  ];
}

const choiceOf = (group: string, number: number, name: string, note: string, choose: () => void): Choice =>
  ({ key: `${group}-${number}`, group, content: <Line name={name} note={note} />, choose });

interface EntityChooserProps { label: string; placeholder: string; onChoose: (entity: Entity) => void }

/** A button that becomes a field, to choose another entity by its name. */
export function EntityChooser({ label, placeholder, onChoose }: EntityChooserProps) {
  const { data } = useData();
  const [isOpen, setOpen] = useState(false);
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>{label}</button>;
  return (
    <Combobox label={label} placeholder={placeholder} autoFocus find={async (text, signal) => {
      const { entities } = await data.suggest(text, { limit: 10 }, signal);
      return entities.map((entity) => choiceOf(texts.tables.entities, entity.number, entity.title, entity.type, () => {
        setOpen(false);
        onChoose(entity);
      }));
    }} />
  );
}

interface Choice {
  key: string;
  /** The heading under which the choice stands. */
  group: string;
  content: ComponentChildren;
  choose: () => void;
}

interface ComboboxProps {
  label: string;
  placeholder: string;
  /** Find the choices for a text. */
  find: (text: string, signal: AbortSignal) => Promise<Choice[]>;
  /** Called for Enter when no choice is active. */
  onSubmit?: (text: string) => void;
  class?: string;
  /** A key that moves the focus to the field. */
  shortcut?: string;
  autoFocus?: boolean;
}

// Milliseconds without a key before the server is asked.
const PAUSE = 120;

function Combobox(props: ComboboxProps) {
  const { label, placeholder, onSubmit, shortcut } = props;
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const { choices, failed } = useChoices(text, isOpen, props.find);
  useShortcut(shortcut, input);
  useLayoutEffect(() => { if (props.autoFocus) input.current?.focus(); }, []);
  useEffect(() => setActive(-1), [choices]);
  useEffect(() => {
    document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const choose = (choice: Choice) => {
    setText("");
    setOpen(false);
    // The keyboard of a telephone would cover what is shown.
    if (matchMedia("(pointer: coarse)").matches) input.current?.blur();
    choice.choose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = choices?.length ?? 0;
    if (event.key === "Escape") {
      event.stopPropagation();
      if (isOpen) setOpen(false);
      else setText("");
    } else if (event.key === "Enter") {
      event.preventDefault();
      // Of several choices none is taken unseen: the first is only made active.
      const chosen = choices?.[active] ?? (onSubmit || count > 1 ? undefined : choices?.[0]);
      if (chosen) choose(chosen);
      else if (count > 1 && !onSubmit) { setOpen(true); setActive(0); }
      else if (text.trim()) { setText(""); setOpen(false); onSubmit?.(text.trim()); }
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((now) => (now < 0 && step < 0 ? count - 1 : (now + step + count) % count));
    }
  };
  const isShown = isOpen && Boolean(text.trim());
  return (
    <div class={`combobox ${props.class ?? ""}`}>
      <input type="text" inputMode="search" role="combobox" ref={input} value={text} placeholder={placeholder}
        aria-label={label} autocomplete="off" spellcheck={false} aria-autocomplete="list"
        aria-expanded={isShown} aria-controls={`${id}-list`}
        aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
        onInput={(event) => { setText(event.currentTarget.value); setOpen(true); }}
        onFocus={() => setOpen(true)} onBlur={() => setOpen(false)} onKeyDown={onKeyDown} />
      {shortcut && <kbd aria-hidden="true">{shortcut}</kbd>}
      <ChoiceList id={id} shown={isShown} choices={choices} active={active} choose={choose} label={label} failed={failed} />
    </div>
  );
}

/** Find the choices for a text after a short pause; those before stay until then. */
function useChoices(text: string, isOpen: boolean, find: ComboboxProps["find"]) {
  const [state, setState] = useState<{ choices: Choice[] | null; failed: boolean }>({ choices: null, failed: false });
  useAbortedEffect((signal) => {
    const wanted = text.trim();
    if (!wanted) setState({ choices: null, failed: false });
    if (wanted && isOpen) setTimeout(() => signal.aborted || find(wanted, signal).then(
      (choices) => signal.aborted || setState({ choices, failed: false }),
      () => signal.aborted || setState({ choices: [], failed: true }),
    ), PAUSE);
  }, [text, isOpen]);
  return state;
}

/** Move the focus to a field when a key is pressed outside of all fields. */
function useShortcut(key: string | undefined, field: { current: HTMLElement | null }) {
  useEffect(() => {
    if (!key) return;
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest("input, select, textarea");
      if (event.key !== key || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [key]);
}

interface ChoiceListProps {
  id: string; shown: boolean; choices: Choice[] | null; active: number; label: string;
  failed: boolean; choose: (choice: Choice) => void;
}

function ChoiceList({ id, shown, choices, active, choose, label, failed }: ChoiceListProps) {
  const said = !shown || !choices ? "" : failed ? texts.errors.unexpected : texts.found(choices.length);
  return (
    <>
      <ul id={`${id}-list`} role="listbox" aria-label={label} class="choices" hidden={!shown || !choices?.length}>
        {choices?.map((choice, at) => (
          <li key={choice.key} id={`${id}-${at}`} role="option" aria-selected={at === active}
            // Pressing the button of the mouse would take the focus from the field before the click.
            onPointerDown={(event) => event.preventDefault()} onClick={() => choose(choice)}>
            {choice.group !== choices[at - 1]?.group && (
              <span class="choice-group" aria-hidden="true">{choice.group}</span>
            )}
            {choice.content}
          </li>
        ))}
      </ul>
      {shown && choices?.length === 0 && <p class="choices nothing">{said}</p>}
      <span class="unseen" role="status">{said}</span>
    </>
  );
}
