/** A button that opens a list of choices: it closes after a choice, with Escape, and when the reader goes elsewhere. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  class: string;
  /** The content of the button. */
  button: ComponentChildren;
  /** The name of a button whose content does not tell it. */
  label?: string;
  children: ComponentChildren;
}

export function Menu({ class: name, button, label, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute("open");
  const leave = (to: EventTarget | null) => {
    if (to instanceof Node && !menu.current?.contains(to)) close();
  };
  const closeAndStay = () => {
    close();
    menu.current?.querySelector("summary")?.focus();
  };
  useEffect(() => {
    const press = (event: Event) => leave(event.target);
    document.addEventListener("pointerdown", press);
    return () => document.removeEventListener("pointerdown", press);
  }, []);
  return (
    <details class={`menu ${name}`} ref={menu} onFocusOut={(event) => leave(event.relatedTarget)}
      onKeyDown={(event) => { if (event.key === "Escape") closeAndStay(); }}>
      <summary aria-label={label} title={label}>{button}</summary>
      <div class="menu-list" onClick={closeAndStay}>{children}</div>
    </details>
  );
}
