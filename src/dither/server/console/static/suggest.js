// The page that proposes bounds for a column: its price before it is paid, and the proposal below.
import { answered, call, newKey, put } from "./console.js";

const byId = (id) => document.getElementById(id);
const form = byId("suggest"), quote = byId("quote"), result = byId("result"), go = byId("go");
const PAUSE = 120; // milliseconds after the last key

function asked() {
  const given = new FormData(form), text = (name) => (given.get(name) || "").trim();
  const made = { column: text("column"), epsilon: text("epsilon") };
  for (const name of ["delta", "by"]) if (text(name)) made[name] = text(name);
  return made;
}

// Only columns of the same table can be the key.
function showKeys() {
  const table = form.elements.column.selectedOptions[0]?.parentElement.label;
  for (const option of form.elements.by.options) option.hidden = option.disabled = Boolean(option.value) && option.dataset.table !== table;
  if (form.elements.by.selectedOptions[0]?.disabled) form.elements.by.value = "";
}

let timer, turn = 0, asking = false;
function later() {
  clearTimeout(timer);
  go.disabled = true;
  timer = setTimeout(quoteNow, PAUSE);
}

async function quoteNow() {
  const mine = ++turn;
  const { ok, data } = await call("POST", "/console/suggest/quote", asked());
  if (mine !== turn) return; // somebody typed on
  if (!ok) {
    quote.textContent = data.what || "The server cannot be reached.";
    return;
  }
  put(quote, data.html);
  go.disabled = asking || !data.may;
  go.textContent = data.free ? "Show the proposal" : data.waits ? "Ask for approval" : data.may ? `Pay ε = ${asked().epsilon}` : "Suggest";
}

form.addEventListener("input", () => {
  showKeys();
  later();
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (asking || go.disabled) return;
  asking = go.disabled = true;
  result.setAttribute("aria-busy", "true");
  try {
    await answered("/console/suggest", asked(), newKey());
  } finally {
    asking = false;
    result.removeAttribute("aria-busy");
    quoteNow();
  }
});
showKeys();
quoteNow();
