/** The workspace: questions and lists on the left, the graph, and evidence on the right. */

import { useEffect, useRef, useState } from "preact/hooks";
import { SideBySide } from "../ask/SideBySide";
import { EvidencePanel } from "../evidence/EvidencePanel";
import { useData, useRepeatedLook } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import { GraphPane } from "./GraphPane";
import { findPanel, LeftPanel } from "./LeftPanel";

/** The part that a small screen shows; a large screen shows all three. */
type Part = "left" | "graph" | "evidence";

// Width of each side panel in pixels: on a narrow window the graph keeps two fifths of it.
const WIDTH = { initial: Math.round(Math.min(400, Math.max(290, innerWidth * 0.3))), min: 260, max: 640 };

interface WorkspaceProps {
  /** Called to look again whether an index without rows has been built. */
  onRetry: () => void;
}

export function Workspace({ onRetry }: WorkspaceProps) {
  const open = useData();
  const { address } = useAddress();
  const { selection, path, panel, question } = address;
  const [left, setLeft] = useState(WIDTH.initial);
  const [right, setRight] = useState(WIDTH.initial);
  const chosen = findPanel(open, panel);
  const isBeside = address.beside.length > 0 && Boolean(open.data.ask);
  const hasEvidence = Boolean(selection ?? path);
  const main: Part = hasEvidence ? "evidence" : chosen ? "left" : "graph";
  const [part, setPart] = useState<Part>(main);
  useEffect(() => setPart(main), [JSON.stringify(selection ?? path)]);
  const [place, setPlace] = useState("");
  useEffect(() => setPlace(path && !selection ? texts.path.title : ""), [JSON.stringify(selection ?? path)]);
  // The tab of the browser names the place, the nearest first.
  const leftTitle = panel === "ask" && question ? question : chosen?.title;
  useEffect(() => {
    document.title = [place, leftTitle, open.summary.name, texts.title].filter(Boolean).join(" · ");
  }, [place, leftTitle, open.summary.name]);
  const surrounded = address.around && `${address.around.kind}-${address.around.number}`;
  const leftKey = isBeside ? panel : `${panel}/${question}`;
  const shownLeft = useRef(leftKey);
  useEffect(() => {
    if (shownLeft.current !== leftKey) setPart("left");
    shownLeft.current = leftKey;
  }, [leftKey]);
  const isWhole = isBeside || address.mode === "documents" || address.mode === "console";
  useEffect(() => { if (surrounded || isWhole) setPart("graph"); }, [surrounded, isWhole]);
  return (
    <main class="workspace" data-part={part} data-evidence={hasEvidence}
      style={{ "--left": `${left}px`, "--right": `${right}px` }}>
      <LeftPanel onChoose={() => setPart("left")} />
      <Splitter label={texts.resize.left} value={left} {...WIDTH} direction={1} onChange={setLeft} />
      {open.summary.version ? isBeside ? <SideBySide /> : <GraphPane /> : <EmptyIndex onRetry={onRetry} />}
      {hasEvidence && (
        <Splitter label={texts.resize.right} value={right} {...WIDTH} direction={-1} onChange={setRight} />
      )}
      <EvidencePanel onTitle={setPlace} />
      <nav class="parts" aria-label={texts.parts.label}>
        {([...(chosen ? ["left"] : []), "graph", ...(hasEvidence ? ["evidence"] : [])] as Part[]).map((name) => (
          <button key={name} type="button" aria-pressed={part === name} onClick={() => setPart(name)}>
            {name === "left" ? chosen?.title : name === "graph" && isBeside ? texts.beside.title : name === "graph" ? texts.modes[address.mode === "table" ? "graph" : address.mode] : texts.parts[name]}
          </button>
        ))}
      </nav>
    </main>
  );
}

/** What stands in the place of the graph while an index has no rows, or cannot be opened. */
function EmptyIndex({ onRetry }: { onRetry: () => void }) {
  const { data, summary: { problem, scopes } } = useData();
  const title = problem ? texts.empty.damaged : texts.empty.title;
  useRepeatedLook(async (signal) => {
    // The page is drawn again only when there is something to show: the reader may be adding documents.
    if (await data.isBuilt?.(signal)) onRetry();
  });
  return (
    <section class="message graph-pane" aria-label={title}>
      <h2>{title}</h2>
      {problem
        ? <p>{problem}</p>
        : <p>{texts.empty.notBuilt} {scopes.includes("index") ? texts.empty.build : texts.empty.askToBuild}</p>}
      <p class="muted">{texts.empty.waiting}</p>
      <p><button type="button" onClick={onRetry}>{texts.retry}</button></p>
    </section>
  );
}

interface SplitterProps {
  label: string;
  /** The width of the panel beside the bar, in pixels. */
  value: number;
  min: number;
  max: number;
  initial: number;
  /** 1 if the panel is on the left of the bar, -1 if it is on the right. */
  direction: 1 | -1;
  onChange: (value: number) => void;
}

// Pixels of one press of an arrow key.
const STEP = 24;

function Splitter({ label, value, min, max, initial, direction, onChange }: SplitterProps) {
  const move = (to: number) => onChange(Math.round(Math.min(max, Math.max(min, to))));
  const onPointerDown = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    const from = event.clientX;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (moved) => move(value + direction * (moved.clientX - from));
    bar.onpointerup = bar.onpointercancel = () => { bar.onpointermove = null; };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -STEP, ArrowRight: STEP };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(value + direction * step);
  };
  return (
    <div class="splitter" role="separator" aria-orientation="vertical" aria-label={label} tabIndex={0}
      aria-valuenow={value} aria-valuemin={min} aria-valuemax={max}
      onPointerDown={onPointerDown} onKeyDown={onKeyDown} onDblClick={() => onChange(initial)} />
  );
}
