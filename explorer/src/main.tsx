import { render } from "preact";
import { showInChat } from "./agent/showInChat";
import { readTheme, showTheme } from "./session";
import { App } from "./shell/App";
import { readEmbeddedPart } from "./static/indexPart";
import { StaticIndex } from "./static/staticIndex";
import "./style.css";
import "./answers.css";
import "./graph/graph.css";
import "./manage/manage.css";

showTheme(readTheme());
const root = document.getElementById("app")!;
const part = await readEmbeddedPart();
if (part) {
  const data = new StaticIndex(part);
  render(<App embedded={{ data, summary: data.summary, notice: data.notice }} />, root);
} else if (window.parent !== window) {
  // The server's own page refuses to be framed, so a frame is that of a chat.
  showInChat(root);
} else render(<App />, root);
