import { render } from "preact";
import { readTheme, showTheme } from "./session";
import { App } from "./shell/App";
import "./style.css";
import "./answers.css";
import "./graph/graph.css";

showTheme(readTheme());
render(<App />, document.getElementById("app")!);
