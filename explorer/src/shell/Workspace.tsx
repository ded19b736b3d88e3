/** The workspace: questions and lists on the left, the graph, and evidence on the right. */

import { useEffect, useRef, useState } from "preact/hooks";
import { AskPanel } from "../ask/AskPanel";
import type { Conversation } from "../ask/conversation";
import { EvidencePanel } from "../evidence/EvidencePanel";
import { useAddress } from "../parts/useAddress";
import { useData } from "../parts/useData";
import { hasFilters } from "../state";
import { texts } from "../texts";
import { GraphPane } from "./GraphPane";
import { MENU, type MenuPanel } from "./menu";
import { Splitter } from "./Splitter";

/** The part that a small screen shows; a large screen shows all three. */
type Part = "left" | "graph" | "evidence";

// Width of each side panel in pixels: on a narrow window the graph keeps two fifths of it.
const WIDTH = { initial: Math.round(Math.min(400, Math.max(290, innerWidth * 0.3))), min: 260, max: 640 };

interface WorkspaceProps {
  conversation: Conversation;
  /** Called to look again whether an index without rows has been built. */
  onRetry: () => void;
}

export function Workspace({ conversation, onRetry }: WorkspaceProps) {
  const { summary } = useData();
  const { address } = useAddress();
  const { selection, path, panel } = address;
  const [left, setLeft] = useState(WIDTH.initial);
  const [right, setRight] = useState(WIDTH.initial);
  const hasEvidence = Boolean(selection ?? path);
  const [part, setPart] = useState<Part>(hasEvidence ? "evidence" : "left");
  useEffect(() => setPart(hasEvidence ? "evidence" : "left"), [JSON.stringify(selection ?? path)]);
  const shownPanel = useRef(panel);
  useEffect(() => {
    if (shownPanel.current !== panel) setPart("left");
    shownPanel.current = panel;
  }, [panel]);
  return (
    <main class="workspace" data-part={part} data-evidence={hasEvidence}
      style={{ "--left": `${left}px`, "--right": `${right}px` }}>
      <LeftPanel conversation={conversation} onChoose={() => setPart("left")} />
      <Splitter label={texts.resize.left} value={left} {...WIDTH} direction={1} onChange={setLeft} />
      {summary.version ? <GraphPane /> : <EmptyIndex onRetry={onRetry} />}
      {hasEvidence && (
        <Splitter label={texts.resize.right} value={right} {...WIDTH} direction={-1} onChange={setRight} />
      )}
      <EvidencePanel />
      <nav class="parts" aria-label={texts.parts.label}>
        {(["left", "graph", ...(hasEvidence ? ["evidence"] : [])] as Part[]).map((name) => (
          <button key={name} type="button" aria-pressed={part === name} onClick={() => setPart(name)}>
            {name === "left" ? panelTitle(panel) : texts.parts[name]}
          </button>
        ))}
      </nav>
    </main>
  );
}

const panelTitle = (name: string) =>
  MENU.find((panel) => panel.name === name)?.title ?? texts.menu.ask;

function EmptyIndex({ onRetry }: { onRetry: () => void }) {
  return (
    <section class="message graph-pane" aria-label={texts.empty.title}>
      <h2>{texts.empty.title}</h2>
      <p>{texts.empty.notBuilt}</p>
      <p><button type="button" onClick={onRetry}>{texts.retry}</button></p>
    </section>
  );
}

interface LeftPanelProps { conversation: Conversation; onChoose: () => void }

function LeftPanel({ conversation, onChoose }: LeftPanelProps) {
  const { address } = useAddress();
  const { summary } = useData();
  // An index without rows has nothing to ask or to browse, but documents can be uploaded.
  const panels = MENU.filter((panel) => summary.version || panel.worksEmpty);
  const chosen = panels.find((panel) => panel.name === address.panel) ??
    (summary.version ? undefined : panels[0]);
  if (!summary.version && !chosen) return null;
  const Panel = chosen?.component;
  return (
    <section class="panel left" aria-label={chosen?.title ?? texts.menu.ask}>
      <Tabs panels={panels} chosen={chosen?.name ?? "ask"} onChoose={onChoose} />
      {Panel ? <Panel /> : <AskPanel conversation={conversation} />}
    </section>
  );
}

interface TabsProps { panels: readonly MenuPanel[]; chosen: string; onChoose: () => void }

function Tabs({ panels, chosen, onChoose }: TabsProps) {
  const { address, href } = useAddress();
  const { summary } = useData();
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
      {summary.version > 0 && tab("ask", texts.menu.ask)}
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
