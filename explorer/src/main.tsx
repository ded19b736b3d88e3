import { render } from "preact";

function App() {
  return <main>The explorer of this index.</main>;
}

render(<App />, document.getElementById("app")!);
