/** The workspace: questions and lists on the left, the graph, and evidence on the right. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { AskPanel } from "../ask/AskPanel";
import { Conversation } from "../ask/conversation";
import { EvidencePanel } from "../evidence/EvidencePanel";
import { useAddress } from "../parts/useAddress";
import { hasFilters } from "../state";
import { texts } from "../texts";
import { GraphPane } from "./GraphPane";
import { MENU } from "./menu";
import { Splitter } from "./Splitter";

/** The part that a small screen shows; a large screen shows all three. */
type Part = "left" | "graph" | "evidence";

// Widths of the side panels in pixels.
const LEFT = { initial: 400, min: 280, max: 640 };
const RIGHT = { initial: 400, min: 280, max: 640 };

export function Workspace() {
  const { address } = useAddress();
  const { selection, path, panel } = address;
  const [left, setLeft] = useState(LEFT.initial);
  const [right, setRight] = useState(RIGHT.initial);
  const hasEvidence = Boolean(selection ?? path);
  const [part, setPart] = useState<Part>(hasEvidence ? "evidence" : "left");
  useEffect(() => setPart(hasEvidence ? "evidence" : "left"), [JSON.stringify(selection ?? path)]);
  useEffect(() => setPart("left"), [panel]);
  return (
    <div class="workspace" data-part={part} data-evidence={hasEvidence}
      style={{ "--left": `${left}px`, "--right": `${right}px` }}>
      <LeftPanel onChoose={() => setPart("left")} />
      <Splitter label={texts.resize.left} value={left} {...LEFT} direction={1} onChange={setLeft} />
      <GraphPane />
      {hasEvidence && (
        <Splitter label={texts.resize.right} value={right} {...RIGHT} direction={-1} onChange={setRight} />
      )}
      <EvidencePanel />
      <nav class="parts" aria-label={texts.parts.label}>
        {(["left", "graph", ...(hasEvidence ? ["evidence"] : [])] as Part[]).map((name) => (
          <button key={name} type="button" aria-pressed={part === name} onClick={() => setPart(name)}>
            {name === "left" ? panelTitle(panel) : texts.parts[name]}
          </button>
        ))}
      </nav>
    </div>
  );
}

const panelTitle = (name: string) =>
  MENU.find((panel) => panel.name === name)?.title ?? texts.menu.ask;

function LeftPanel({ onChoose }: { onChoose: () => void }) {
  const { address, href } = useAddress();
  // The conversation stays while the reader looks at other panels.
  const conversation = useMemo(() => new Conversation(), []);
  useEffect(() => () => conversation.cancel(), []);
  const chosen = MENU.find((panel) => panel.name === address.panel);
  const tabs = [{ name: "ask", title: texts.menu.ask }, ...MENU];
  const Panel = chosen?.component;
  return (
    <main class="panel left" aria-label={panelTitle(address.panel)}>
      <nav class="tabs" aria-label={texts.menu.label}>
        {tabs.map(({ name, title }) => (
          <a key={name} href={href({ panel: name })} onClick={onChoose}
            aria-current={name === (chosen?.name ?? "ask") ? "page" : undefined}>
            {title}
            {name === "filters" && hasFilters(address.filters) && (
              <span class="dot"><span class="unseen">{texts.filters.set}</span></span>
            )}
          </a>
        ))}
      </nav>
      {Panel ? <Panel /> : <AskPanel conversation={conversation} />}
    </main>
  );
}
