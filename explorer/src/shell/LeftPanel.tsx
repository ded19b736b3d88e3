/** The panel on the left: the tabs of the menu, and the panel that is chosen. A part of the page adds its line to the menu. */

import type { ComponentType } from "preact";
import type { Scope } from "../api";
import { AskPanel } from "../ask/AskPanel";
import { ConversationsPanel } from "../ask/Conversations";
import { BrowsePanel } from "../find/BrowsePanel";
import { FilterPanel } from "../find/FilterPanel";
import { VersionsPanel } from "../find/VersionsPanel";
import { DocumentsPanel } from "../manage/DocumentsPanel";
import { EvaluationsPanel } from "../manage/EvaluationsPanel";
import { HealthPanel } from "../manage/HealthPanel";
import { NamesPanel } from "../manage/NamesPanel";
import { Menu } from "../parts/Menu";
import { type OpenIndex, useData } from "../parts/useData";
import { hasFilters, useAddress } from "../state";
import { texts } from "../texts";

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

interface MenuPanel {
  /** The name in the address. */
  name: string;
  title: string;
  component: ComponentType;
  /** The scope that the panel needs; "read" if it is not given. */
  scope?: Scope;
  /** Whether the panel stands under "More" instead of among the tabs. */
  isMore?: boolean;
  /** Whether the panel is of use before the first run, when the index has no rows. */
  worksEmpty?: boolean;
  /** Whether the panel works on a static page, without a server. */
  worksStatic?: boolean;
}

/** The panels, in the order of the menu. */
const MENU: readonly MenuPanel[] = [
  { name: "ask", title: texts.menu.ask, component: AskPanel, scope: "ask" },
  { name: "browse", title: texts.menu.browse, component: BrowsePanel, worksStatic: true },
  { name: "filters", title: texts.menu.filters, component: FilterPanel },
  { name: "versions", title: texts.menu.versions, component: VersionsPanel },
  { name: "conversations", title: texts.menu.conversations, component: ConversationsPanel, scope: "ask", isMore: true },
  {
    name: "documents", title: texts.menu.documents, component: DocumentsPanel, scope: "index", isMore: true,
    worksEmpty: true,
  },
  { name: "names", title: texts.menu.names, component: NamesPanel, scope: "index", isMore: true },
  { name: "health", title: texts.menu.health, component: HealthPanel, isMore: true },
  { name: "evaluations", title: texts.menu.evaluations, component: EvaluationsPanel, isMore: true },
];

/** Return the panels that an index offers. */
export function listPanels({ data, summary }: OpenIndex): MenuPanel[] {
  return MENU.filter(({ scope = "read", worksEmpty, worksStatic }) =>
    summary.scopes.includes(scope) && (summary.version || (worksEmpty && !summary.problem)) &&
    (data.ask || worksStatic),
  );
}

/** Return the panel of the address, or else the first one; undefined if the index offers none. */
export function findPanel(open: OpenIndex, name: string): MenuPanel | undefined {
  const panels = listPanels(open);
  return panels.find((panel) => panel.name === name) ?? panels[0];
}
