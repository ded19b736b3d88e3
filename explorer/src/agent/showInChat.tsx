/** The page inside a chat: it shows the results of the tool `graph`. */

import { render } from "preact";
import { showTheme } from "../session";
import { App } from "../shell/App";
import { EMPTY_ADDRESS, formatAddress } from "../state";
import { AgentHost, type ToolResult } from "./agentHost";
import { AgentIndex, type GraphResult } from "./AgentIndex";

export function showInChat(root: Element): void {
  // A link of a page without an address of its own would lead to the page around it.
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    location.hash = link.getAttribute("href")!;
  });
  const host = new AgentHost(
    ({ structuredContent }: ToolResult) => {
      if (!structuredContent?.mode) return;
      const shown = structuredContent as unknown as GraphResult;
      const data = new AgentIndex(host, shown);
      location.hash = formatAddress({
        ...EMPTY_ADDRESS, index: shown.index, panel: "browse",
        ...(shown.mode === "path" && shown.to !== undefined
          ? { path: { from: shown.entity, to: shown.to } }
          : { selection: { kind: "entity" as const, number: shown.entity } }),
      });
      const summary = { name: shown.index, version: shown.version, workflow: "", tables: data.tables, methods: [], scopes: [] };
      render(<App embedded={{ data, summary }} />, root);
    },
    ({ theme }) => { if (theme) showTheme(theme); },
  );
  host.start().catch((error: unknown) => { root.textContent = String(error); });
}
