import { render } from "preact";
import { showInChat } from "./agent/showInChat";
import { readTheme, showTheme } from "./session";
import { App } from "./shell/App";
import "./style.css";
import "./answers.css";
import "./graph/graph.css";

showTheme(readTheme());
const root = document.getElementById("app")!;
// The server's own page refuses to be framed, so a frame is that of a chat.
if (window.parent !== window) showInChat(root);
else render(<App />, root);
