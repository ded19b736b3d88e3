/** The panel on the left: the tabs of the menu, and the panel that is chosen. */

import { Menu } from "../parts/Menu";
import { useData } from "../parts/useData";
import { hasFilters, useAddress } from "../state";
import { texts } from "../texts";
import { findPanel, listPanels } from "./menu";

export function LeftPanel({ onChoose }: { onChoose: () => void }) {
  const { address } = useAddress();
  const chosen = findPanel(useData(), address.panel);
  if (!chosen) return null;
  const Panel = chosen.component;
  return (
    <section class="panel left" aria-label={chosen.title}>
      <h2 class="unseen">{chosen.title}</h2>
      <Tabs chosen={chosen.name} onChoose={onChoose} />
      <Panel />
    </section>
  );
}

interface TabsProps { chosen: string; onChoose: () => void }

function Tabs({ chosen, onChoose }: TabsProps) {
  const { address, href } = useAddress();
  const panels = listPanels(useData());
  const tab = (name: string, title: string) => (
    <a key={name} href={href({ panel: name })} aria-current={name === chosen ? "page" : undefined} onClick={onChoose}>
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
        <Menu class="more-panels" button={others.find(({ name }) => name === chosen)?.title ?? texts.menu.more}>
          {others.map(({ name, title }) => tab(name, title))}
        </Menu>
      )}
    </nav>
  );
}
