// The page with the editor: a quote while typing, the mistake underlined, the answer below.
import { answered, call, newKey, put } from "./console.js";

const byId = (id) => document.getElementById(id);
const page = byId("ask"), terms = byId("terms"), quote = byId("quote"), result = byId("result"), go = byId("go");
const { makeEditor } = await import(document.querySelector("script[data-editor]").dataset.editor);
const PAUSE = 120; // milliseconds after the last key

const kept = sessionStorage.getItem("dither-question");
sessionStorage.removeItem("dither-question");
const editor = makeEditor(byId("editor"), {
  doc: kept || byId("editor").dataset.question,
  catalog: JSON.parse(page.dataset.completions),
  nonce: page.dataset.nonce,
  label: "Question in SQL",
  changed: () => later(),
  run: () => ask(),
});

const rows = () => Number(new FormData(terms).get("assume_rows")) || 1000; // in a group: margins of means depend on it

function form() {
  const given = new FormData(terms), text = (name) => (given.get(name) || "").trim();
  const asked = { question: editor.text(), confidence: text("confidence") };
  asked[given.get("by")] = text(given.get("by"));
  for (const name of ["max_rows", "max_groups"]) {
    const value = text(name);
    if (value) asked[name] = /^[0-9]+$/.test(value) ? Number(value) : value;
  }
  if (text("sample")) asked.sample = text("sample");
  if (text("weights")) asked.weights = text("weights").split(",").map((each) => each.trim());
  const named = [...values.querySelectorAll("input")].map((input) => [input.dataset.name, valueOf(input.value.trim())]);
  if (named.length) asked.params = Object.fromEntries(named);
  if (!given.has("left_out")) asked.left_out = false;
  if (given.get("by") === "margin") asked.assume_rows = rows();
  return asked;
}

// --- parameters: a field for each :name in the question ----------------------------------------------------------

const values = byId("values");
function valueOf(text) {
  if (/^-?[0-9]{1,15}$/.test(text)) return Number(text);
  if (/^-?[0-9]*[.][0-9]+$/.test(text)) return { decimal: text };
  return /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text) ? { date: text } : text;
}

function showValues() {
  const plain = editor.text().replace(/'[^']*'|"[^"]*"|--.*|::/g, " ");
  const names = [...new Set([...plain.matchAll(/:([A-Za-z_][A-Za-z0-9_]*)/g)].map((found) => found[1]))];
  const before = Object.fromEntries([...values.querySelectorAll("input")].map((input) => [input.dataset.name, input]));
  if (names.join() === Object.keys(before).join()) return;
  values.replaceChildren(
    ...names.map((name) => {
      const label = document.createElement("label"), input = before[name] || document.createElement("input");
      input.dataset.name = name;
      input.spellcheck = false;
      label.append(`:${name}`, input);
      return label;
    }),
  );
  values.hidden = !names.length;
}

// --- the quote --------------------------------------------------------------------------------------------------

let timer, turn = 0;
function later() {
  clearTimeout(timer);
  go.disabled = true;
  timer = setTimeout(quoteNow, PAUSE);
}

async function quoteNow() {
  const mine = ++turn;
  showValues();
  if (!editor.text().trim()) return editor.mark(null);
  const started = performance.now();
  const { ok, data } = await call("POST", "/console/quote", { ...form(), assume_rows: rows() });
  if (mine !== turn) return; // somebody typed on
  if (!ok) {
    quote.textContent = data.what || "The server cannot be reached.";
    return;
  }
  put(quote, data.html);
  editor.mark(data.span, data.message);
  go.disabled = !data.may;
  go.textContent = data.free ? "Show the answer" : data.waits ? "Ask for approval" : "Ask";
  quote.dataset.milliseconds = Math.round(performance.now() - started);
}

// --- the answer -------------------------------------------------------------------------------------------------

let asking = false;
async function ask(more = {}) {
  if (asking || (go.disabled && !more.free)) return;
  asking = true;
  go.disabled = true;
  result.setAttribute("aria-busy", "true");
  try {
    const asked = more.free ? { question: editor.text(), confidence: form().confidence, ...more } : { ...form(), ...more };
    const data = await answered("/console/ask", asked, newKey());
    if (data.span) editor.mark(data.span, data.message);
  } finally {
    asking = false;
    result.removeAttribute("aria-busy");
    quoteNow();
  }
}

// --- controls ---------------------------------------------------------------------------------------------------

terms.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
terms.addEventListener("input", (event) => {
  if (event.target.name === "by")
    for (const name of ["epsilon", "margin"]) byId(`by-${name}`).hidden = event.target.value !== name;
  later();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.example !== undefined) editor.replace(button.dataset.example);
  if (button.dataset.insert !== undefined) editor.insert(button.dataset.insert);
  if (button.dataset.free !== undefined) ask({ free: true });
});
if (editor.text().trim()) quoteNow();
