// What every page needs: requests to this server, logging in and out, decisions of curators, verifying.

export async function call(method, path, body, headers = {}) {
  const response = await fetch(path, {
    method,
    credentials: "same-origin",
    headers: body === undefined ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  let data = {};
  try { data = text ? JSON.parse(text) : {}; } catch { data = { what: "The server sent no JSON." }; }
  if (response.status === 401 && location.pathname !== "/login") location.assign("/login");
  return { ok: response.ok, status: response.status, data };
}

// Puts HTML into an element. It comes from a template of this server, which escaped every text in it.
export function put(element, html) {
  element.innerHTML = html;
}

const byId = (id) => document.getElementById(id);

// A retry with the same key is never paid twice.
export const newKey = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();

// Asks, waits for the answer, shows it below and moves the budget. Returns what came back.
export async function answered(path, asked, key) {
  const result = byId("result");
  let { data } = await call("POST", path, asked, { "Idempotency-Key": key });
  while (data.state === "answering") {
    put(result, data.html);
    await new Promise((done) => setTimeout(done, 1000));
    ({ data } = await call("GET", `/console/answers/${data.id}`));
  }
  if (data.html) put(result, data.state === "refused" ? `<div class="card">${data.html}</div>` : data.html);
  else result.textContent = data.what;
  if (data.budget) put(byId("meter"), data.budget);
  const top = result.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight - 160) result.scrollIntoView({ block: "start" });
  return data;
}

function showProblem(data) {
  const box = byId("login-problem");
  box.textContent = data.what || "The server cannot be reached.";
  box.hidden = false;
}

async function logIn(body) {
  byId("login-problem").hidden = true;
  byId("login-wait").hidden = false;
  try {
    const { ok, data } = await call("POST", "/v1/login", body);
    if (ok) return location.assign("/");
    showProblem(data);
  } catch {
    showProblem({});
  }
  byId("login-wait").hidden = true;
}

if (byId("login")) {
  // A link that works once: /login#dthl_…. The fragment is sent to no server, and is removed from the address at once.
  const useLink = () => {
    const code = location.hash.slice(1);
    if (!code.startsWith("dthl_")) return;
    history.replaceState(null, "", "/login");
    logIn({ code });
  };
  addEventListener("hashchange", useLink);
  useLink();
  for (const form of document.querySelectorAll("form[data-kind]"))
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      logIn(Object.fromEntries(new FormData(form)));
    });
}

byId("logout")?.addEventListener("click", async () => {
  await call("POST", "/v1/logout", {});
  location.assign("/login");
});

byId("verify")?.addEventListener("click", async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  button.textContent = "Verifying …";
  const { ok, data } = await call("GET", "/console/verify");
  if (ok) put(byId("verdict"), data.html);
  else byId("verdict").textContent = data.what;
  button.disabled = false;
  button.textContent = "Verify again";
});

for (const form of document.querySelectorAll("form[data-approval]"))
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const words = new FormData(form).get("words") || "";
    const decision = event.submitter?.value;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    const { ok, data } = await call("POST", `/v1/approvals/${form.dataset.approval}`, { decision, words });
    if (ok) return location.reload();
    const box = form.querySelector("[role=alert]");
    box.textContent = data.what;
    box.hidden = false;
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  });

for (const button of document.querySelectorAll("[data-ask]"))
  button.addEventListener("click", () => {
    sessionStorage.setItem("dither-question", button.dataset.ask);
    location.assign("/");
  });
