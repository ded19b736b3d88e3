/** The panel on the left: the tabs of the menu, and the panel that is chosen. */

import { useRef } from "preact/hooks";
import { useAddress } from "../parts/useAddress";
import { useData } from "../parts/useData";
import { hasFilters } from "../state";
import { texts } from "../texts";
import { findPanel, listPanels } from "./menu";

export function LeftPanel({ onChoose }: { onChoose: () => void }) {
  const { address } = useAddress();
  const chosen = findPanel(useData(), address.panel);
  if (!chosen) return null;
  const Panel = chosen.component;
  return (
    <section class="panel left" aria-label={chosen.title}>
      <Tabs chosen={chosen.name} onChoose={onChoose} />
      <Panel />
    </section>
  );
}

interface TabsProps { chosen: string; onChoose: () => void }

function Tabs({ chosen, onChoose }: TabsProps) {
  const { address, href } = useAddress();
  const panels = listPanels(useData());
  const more = useRef<HTMLDetailsElement>(null);
  const tab = (name: string, title: string) => (
    <a key={name} href={href({ panel: name })} aria-current={name === chosen ? "page" : undefined}
      onClick={() => { more.current?.removeAttribute("open"); onChoose(); }}>
      {title}
      {name === "filters" && hasFilters(address.filters) && (
        <span class="dot"><span class="unseen">{texts.filters.set}</span></span>
      )}
    </a>
  );
  const others = panels.filter((panel) => panel.isMore);
  return (
    <nav class="tabs" aria-label={texts.menu.label}>
      {panels.filter((panel) => !panel.isMore).map(({ name, title }) => tab(name, title))}
      {others.length > 0 && (
        <details class="menu" ref={more} onKeyDown={(event) => {
          if (event.key === "Escape") more.current?.removeAttribute("open");
        }}>
          <summary>{others.find(({ name }) => name === chosen)?.title ?? texts.menu.more}</summary>
          <div class="menu-list">{others.map(({ name, title }) => tab(name, title))}</div>
        </details>
      )}
    </nav>
  );
}
