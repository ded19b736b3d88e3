"use strict";
// Texts of questions, documents and models become text nodes, never markup.
const data = document.getElementById("record");
const record = JSON.parse(data.textContent);
const effort = JSON.parse(data.dataset.effort);
const systems = Object.keys(record.results);
const list = document.getElementById("questions");
// Questions that are added to the list at once.
const STEP = 50;

const chosen = (name) => document.getElementById(name)?.value ?? "";
const counted = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const number = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(3));

/** Make an element of a type and a class, such as "p.muted", with texts and elements in it. */
function make(name, ...content) {
  const [type, ...classes] = name.split(".");
  const made = document.createElement(type);
  made.className = classes.join(" ");
  made.append(...content);
  return made;
}

/** Make an element for a text in any script: its letters decide its direction. */
function text(name, content) {
  const made = make(name, content);
  made.dir = "auto";
  return made;
}

/** Make an element that can be opened; its content is made when it is opened first. */
function folded(summary, makeContent, isOpen = false) {
  const made = make("details", summary);
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(...makeContent());
  });
  made.open = isOpen;
  return made;
}

const shownSystems = () => systems.filter((name) => ["", name].includes(chosen("system")));
const score = (system, at, measure) => record.results[system][at].scores[measure];

/** Return what questions are ordered by, the lowest first: the worst of the systems, then their mean. */
function rank(at) {
  const measure = chosen("measure");
  const sign = effort.includes(measure) ? -1 : 1;
  const first = score(systems[0], at, measure);
  const values = shownSystems().flatMap((name) => {
    const value = score(name, at, measure);
    if (value === undefined) return [];
    if (chosen("order") === "lowest") return [sign * value];
    return name === systems[0] || first === undefined ? [] : [sign * (value - first)];
  });
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.length ? [Math.min(...values), mean] : undefined;
}

function showList() {
  const kind = chosen("kind");
  const ranked = record.questions.map((question, at) => ({ question, at, rank: rank(at) }))
    .filter((item) => item.rank !== undefined && ["", `=${item.question.kind}`].includes(kind))
    .sort(({ rank: [worst, mean] }, { rank: [otherWorst, otherMean] }) => worst - otherWorst || mean - otherMean);
  const without = record.questions.length - ranked.length;
  document.getElementById("count").textContent = counted(ranked.length, "question") +
    (without ? `; left out: ${without} of another kind, or without a score to be ordered by` : "");
  list.replaceChildren();
  showMore(ranked);
}

function showMore(ranked) {
  for (const { at } of ranked.slice(0, STEP)) list.append(make("li", showQuestion(at)));
  const left = ranked.slice(STEP);
  if (!left.length) return;
  const more = make("button", `Show more (${left.length} left)`);
  more.type = "button";
  const item = make("li", more);
  more.addEventListener("click", () => { item.remove(); showMore(left); });
  list.append(item);
}

function showQuestion(at) {
  const question = record.questions[at];
  const measure = chosen("measure");
  const scores = shownSystems().map((name) => {
    const value = score(name, at, measure);
    return make("span.score", name, " ", make("b", value === undefined ? "–" : number(value)));
  });
  const kind = question.kind ? [text("span.kind", question.kind)] : [];
  const summary = make("summary", text("span.asked", question.text), make("span.scores", ...kind, ...scores));
  return folded(summary, () => [
    ...showKnown(question, at), ...shownSystems().map((name) => showResult(question, name, at)),
    ...showVerdicts(at),
  ]);
}

/** Show for each judged pair of answers who won, and what the judge said in both orders. */
function showVerdicts(at) {
  const shown = shownSystems();
  const pairs = record.verdicts.filter((one) => one.question === at && shown.includes(one.first) && shown.includes(one.second));
  if (!pairs.length) return [];
  const items = pairs.map((pair) => {
    const orders = [[pair.first, pair.second], [pair.second, pair.first]].map(([first, second], order) => {
      const winner = { first, second, tie: "tie" }[pair.shown[order]] ?? "not readable";
      return make("li", text("b", `${first} shown first: ${winner}`), " ", text("span.muted", pair.reasons[order]));
    });
    const isFlip = pair.shown[0] !== "tie" && pair.shown[0] !== "" && pair.shown[0] === pair.shown[1];
    const result = { "": "no verdict", tie: isFlip ? "a tie, since the same place won twice" : "a tie" }[pair.winner] ?? `${pair.winner} wins`;
    return make("div", text("p", `${pair.first} and ${pair.second}: ${result}`), make("ul", ...orders));
  });
  return [make("section", make("h3", "Judged pairs"), ...items)];
}

/** Show what is known about the answer: answers, statements, gold items and who found them. */
function showKnown(question, at) {
  const shown = [make("h3", "Known")];
  if (!question.is_answerable) shown.push(make("p", "The documents do not hold an answer."));
  if (question.answers.length) shown.push(text("p", `Answer: ${question.answers.join(" / ")}`));
  if (question.statements.length) {
    shown.push(make("ul", ...question.statements.map((statement) => text("li", statement))));
  }
  const gold = question.gold.map((item, position) => {
    const found = shownSystems().map((name) => {
      const rankOf = record.results[name][at].holds.findIndex((held) => held.includes(position));
      return rankOf < 0 ? make("span.score.missed", `missed by ${name}`)
        : make("span.score", `${name}: passage ${rankOf + 1}`);
    });
    return make("li", text("b", item.title || item.document || "Any document"), " ",
      text("span.muted", item.title ? item.document : ""), make("span.scores", ...found),
      text("p.text", item.text || "The text is not in these indexes."));
  });
  if (gold.length) shown.push(make("h4", "Gold"), make("ol", ...gold));
  return shown;
}

function showResult(question, system, at) {
  const { outcome, answer, notes, citations, scores, passages, holds } = record.results[system][at];
  const missed = question.gold.map((_, position) => position + 1)
    .filter((of) => !holds.some((held) => held.includes(of - 1)));
  const shown = make("section", make("h3", system, " ", make("span.kind", outcome.replaceAll("_", " "))),
    text("p.answer", answer || "No answer."), ...notes.map((note) => text("p.muted", note)));
  if (citations.length) {
    shown.append(folded(make("summary", counted(citations.length, "citation")), () => [
      make("ul", ...citations.map((one) => make("li", `[${one.number}] `, text("b", one.document), text("p.text", one.quote)))),
    ]));
  }
  if (missed.length) shown.append(make("p.missed", `Missed: gold ${missed.join(", ")}`));
  const isAlone = shownSystems().length === 1;
  shown.append(folded(make("summary", counted(passages.length, "passage")), () => [
    make("ol", ...passages.map((position, index) => showPassage(record.passages[position], holds[index]))),
  ], isAlone));
  shown.append(folded(make("summary", "Scores"), () => [
    make("dl.pairs", ...Object.entries(scores).map(([name, value]) =>
      make("div", make("dt", name), make("dd", number(value))))),
  ]));
  return shown;
}

function showPassage({ document: title, path, start_char, end_char, text: content }, held) {
  const marks = held.map((position) => make("mark", `gold ${position + 1}`));
  const place = `${path === title ? "" : `${path} `}${start_char}–${end_char}`;
  return make("li", text("b", title), " ", make("span.muted", place), " ", ...marks, text("p.text", content));
}

for (const control of document.querySelectorAll("select")) control.addEventListener("change", showList);
document.getElementById("cut").textContent = `Passages are cut to ${record.passage_chars.toLocaleString("en")} characters.`;
showList();
