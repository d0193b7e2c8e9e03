"use strict";
// Shows what /api/status says, asked once a second. Whatever comes from outside is set as text, never as HTML.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const LENGTH = 600;
// The fields of a second that are stacked, in the order of polite.status.recorder.Second, and what people read.
const SERIES = [["well", "2xx and 3xx", 0], ["robots", "robots.txt", 4], ["not-well", "4xx", 1], ["slowed", "429 and 503", 2], ["failed", "5xx, none", 3]];
const IN_FLIGHT = 6, WAITING = 7;
const GRAVE = { circuit: "bad", unreachable: "bad", error: "bad", back_off: "warn", hours: "warn", fetch_slot: "warn", worker: "warn", home: "warn", dropping: "bad" };

let state = null, seconds = [], count = 0, paused = false, cursor = null, lastAt = 0;

// Text.

const whole = new Intl.NumberFormat("en");
function number(value) {
  if (value >= 10 || Number.isInteger(value)) return whole.format(Math.round(value));
  return value.toFixed(value < 1 ? 2 : 1);
}
function duration(s) {
  if (s === null || s === undefined) return "";
  if (s < 10) return `${Math.max(0, s).toFixed(1)} s`;
  if (s < 100) return `${Math.round(s)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} m ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h} h ${String(m % 60).padStart(2, "0")} m`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}
const clock = (wall) => new Date(wall * 1000).toLocaleTimeString("en-GB");
const words = (name) => name.toLowerCase().replaceAll("_", " ");
const many = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

// Elements. A list keeps its elements by key, so that focus and selection stay where they are.

function set(node, text) { if (node.textContent !== text) node.textContent = text; }
function make(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children);
  return node;
}
function list(parent, items, key, create, update) {
  const old = parent.kept || new Map(), kept = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    if (kept.has(name)) continue;
    const node = old.get(name) || create(item);
    kept.set(name, node);
    update(node, item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  while (place) { const next = place.nextElementSibling; place.remove(); place = next; }
  parent.kept = kept;
}

// Parts of the page.

function notices() {
  list($("notices"), state.notices, (n) => `${n.level} ${n.text.replace(/\d/g, "")}`, () => make("li"), (node, n) => {
    node.className = n.level;
    set(node, n.text);
  });
}

function tiles() {
  const f = state.frontier, g = state.gate, r = state.rates;
  const shown = [
    ["Requests per second", number(r.requests + r.robots), `${number(r.robots)} of them robots.txt`],
    ["In flight", number(g.inside), f ? many(f.idle_workers, "idle worker") : "permits held", IN_FLIGHT],
    ["Waiting", number(g.waiting + (f ? f.waiting : 0)), f ? `URLs${g.waiting ? `, ${many(g.waiting, "permit")} of them` : ""}` : "permits", WAITING],
    f ? ["Done", number(f.done), `${number(g.granted)} permits granted`] : ["Granted", number(g.granted), `${number(g.waited)} of them waited`],
    ["Refused by robots.txt", number(f ? Math.max(f.refused, g.refused) : g.refused), words(Object.keys(state.refused)[0] || "")],
    f ? ["Given up", number(f.dropped), Object.keys(state.dropped)[0] || "", null, f.dropped > 0] : ["Slowed down", number(g.slowed), "429 or 503", null, false],
  ];
  list($("tiles"), shown, (t) => t[0], (t) => {
    const node = make("div", "tile", make("div", "label", t[0]), make("div", "value"), make("div", "more"));
    if (t[3]) {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "0 0 600 100");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.append(document.createElementNS(SVG, "path"));
      node.append(svg);
    }
    return node;
  }, (node, t) => {
    set(node.children[1], t[1]);
    set(node.children[2], t[2]);
    node.classList.toggle("bad", Boolean(t[4]));
    if (t[3]) node.children[3].firstChild.setAttribute("d", line(t[3]));
  });
}

function line(index) {
  const last = seconds.slice(-120), most = Math.max(1, ...last.map((s) => s[index]));
  if (last.length < 5) return "";
  return `M${last.map((s, i) => `${(600 * i / (last.length - 1)).toFixed(1)} ${(96 - 90 * s[index] / most).toFixed(1)}`).join("L")}`;
}

function bucketed() {
  const width = $("timeline").clientWidth || 600, size = width > 900 ? 2 : width > 500 ? 4 : 6;
  const buckets = [];
  // Aligned to all seconds that ever came, so that bars do not flicker.
  for (let i = 0; i < seconds.length;) {
    const last = Math.min(seconds.length, i + size - (count - seconds.length + i) % size);
    const sums = SERIES.map(([, , field]) => {
      let sum = 0;
      for (let j = i; j < last; j++) sum += seconds[j][field];
      return sum / size;
    });
    buckets.push({ from: i, to: last, sums, total: sums.reduce((a, b) => a + b, 0) });
    i = last;
  }
  return { buckets, size };
}

function timeline() {
  const { buckets, size } = bucketed();
  const most = Math.max(1, ...buckets.map((b) => b.total)), top = nice(most);
  const paths = SERIES.map(() => []);
  for (const bucket of buckets) {
    const x = LENGTH - seconds.length + bucket.from, w = Math.max(0.4, (bucket.to - bucket.from) * 0.82);
    let y = 100;
    bucket.sums.forEach((value, n) => {
      if (!value) return;
      const h = 100 * value / top;
      y -= h;
      paths[n].push(`M${x} ${y.toFixed(2)}h${w}v${h.toFixed(2)}h${-w}z`);
    });
  }
  const svg = $("timeline");
  if (!svg.firstChild) {
    for (const [name] of SERIES) { const path = document.createElementNS(SVG, "path"); path.setAttribute("class", name); svg.append(path); }
    const mark = document.createElementNS(SVG, "rect");
    mark.setAttribute("class", "cursor"); mark.setAttribute("height", "100"); mark.setAttribute("width", "0");
    svg.append(mark);
  }
  paths.forEach((d, n) => svg.children[n].setAttribute("d", d.join("")));
  set($("scale"), `${number(top)} per second`);
  const totals = SERIES.map(([, , field]) => seconds.reduce((sum, s) => sum + s[field], 0));
  list($("legend"), SERIES.map((s, n) => [...s, totals[n]]), (s) => s[0], (s) => make("li", s[0], make("i"), make("span")), (node, s) => set(node.lastChild, `${s[1]}: ${number(s[3])}`));
  readout(buckets, size);
}

function nice(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * unit).find((n) => n >= value);
}

function readout(buckets, size) {
  const mark = $("timeline").lastChild;
  const bucket = cursor === null ? null : buckets.find((b) => LENGTH - seconds.length + b.from <= cursor && cursor < LENGTH - seconds.length + b.to);
  mark.setAttribute("width", bucket ? String(bucket.to - bucket.from) : "0");
  if (!bucket) { set($("readout"), ""); return; }
  mark.setAttribute("x", String(LENGTH - seconds.length + bucket.from));
  const parts = SERIES.map(([, label], n) => [label, bucket.sums[n] * size]).filter(([, n]) => n).map(([label, n]) => `${number(n)} × ${label}`);
  set($("readout"), `${clock(state.now - (seconds.length - bucket.from))}: ${parts.join(", ") || "no response"}`);
}

function bars(id, rows, none) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  if (!rows.length) rows = [{ key: "", label: none, count: null }];
  list($(id), rows, (row) => row.key, (row) => {
    if (row.count === null) return make("li", "empty", row.label);
    const label = make(row.pick ? "button" : "span", "label");
    if (row.pick) { label.type = "button"; label.addEventListener("click", () => row.pick()); }
    return make("li", row.kind || "", label, make("span", "count", make("b"), make("small")), make("div", "track", make("i")));
  }, (node, row) => {
    if (row.count === null) return;
    set(node.children[0], row.label);
    set(node.children[1].firstChild, number(row.count));
    set(node.children[1].lastChild, row.more ? ` ${row.more}` : "");
    node.children[2].firstChild.style.width = `${(100 * row.count / most).toFixed(1)}%`;
  });
}

function side() {
  bars("waiting", state.waiting.map((row) => ({
    key: row.reason, label: row.text, count: row.urls + row.permits,
    more: row.origins ? `of ${many(row.origins, "origin")}` : row.permits && !row.urls ? "permits" : "",
    pick: () => { $("reason").value = row.reason; $("reason").dispatchEvent(new Event("change")); $("origins").focus(); },
  })), "Nothing waits.");
  set($("waiting-total"), state.survey.left_out ? `${number(state.survey.visited)} looked at` : "");
  bars("robots", state.robots.map((row) => ({
    key: `${row.outcome} ${row.reason}`, label: row.reason === "OK" ? row.outcome : `${row.outcome}: ${words(row.reason)}`,
    count: row.count, kind: { found: "well", unavailable: "not-well", unreachable: "failed" }[row.outcome],
  })), "None was fetched since this page is served.");
  bars("responses", Object.entries(state.responses).map(([status, n]) => ({
    key: status, label: status === "none" ? "no response" : status, count: n,
    kind: status === "none" || (status >= "500" && status !== "503") ? "failed" : status === "429" || status === "503" ? "slowed" : status >= "400" ? "not-well" : "well",
  })), "None since this page is served.");
  set($("response-time"), state.rates.response_s === null ? "" : `${duration(state.rates.response_s)} on average`);
  const ended = [...Object.entries(state.refused).map(([key, n]) => ({ key: `r${key}`, label: `refused: ${words(key)}`, count: n })),
    ...Object.entries(state.dropped).map(([key, n]) => ({ key: `d${key}`, label: `given up: ${key}`, count: n, kind: "failed" }))];
  bars("ended", ended, "None since this page is served.");
  $("circuits-card").hidden = !state.open_circuits;
  set($("circuits-total"), state.open_circuits > state.circuits.length ? `${number(state.circuits.length)} of ${number(state.open_circuits)}` : "");
  list($("circuits"), state.circuits, (row) => row.scope, () => make("li", "bad", make("time"), make("div", "", make("b"), make("br"), make("span"))), (node, row) => {
    set(node.firstChild, row.until_s > 0 ? `for ${duration(row.until_s)}` : "probe");
    set(node.lastChild.firstChild, row.scope);
    set(node.lastChild.lastChild, `${many(row.failures, "failure")} in a row, open for ${duration(row.since_s)}, opened ${row.openings === 1 ? "once" : `${row.openings} times`}`);
  });
  $("held-card").hidden = !state.held.length;
  list($("held"), state.held.slice(0, 8), (row) => row.url, () => make("li", "", make("span", "url"), make("span")), (node, row) => {
    set(node.firstChild, row.url);
    set(node.lastChild, duration(row.held_s));
  });
  shared();
}

function shared() {
  const crawl = state.shared;
  $("shared-card").hidden = !crawl;
  if (!crawl) return;
  set($("shared-name"), `${crawl.crawl || ""} ${crawl.store || ""}`);
  const notes = [crawl.error ? `The server says nothing: ${crawl.error}` : "", crawl.quiet_s > 0 ? `No home is given for ${duration(crawl.quiet_s)}: the server was another.` : ""];
  set($("shared-note"), notes.filter(Boolean).join(" "));
  list($("sessions"), crawl.sessions || [], (row) => row.name, () => make("li", "", make("span"), make("span")), (node, row) => {
    set(node.firstChild, row.name);
    set(node.lastChild, `${many(row.homes, "home")}, ${row.ends_s > 0 ? `lease ${duration(row.ends_s)}` : "ended"}${row.closed ? ", puts no more" : ""}`);
  });
  const homes = [...(crawl.held || []).map((row) => ({ home: row.home, text: row.delayed_s > 0 ? `held, delayed ${duration(row.delayed_s)}` : "held" })),
    ...(crawl.line || []).map((row) => ({ home: row.home, text: row.in_s > 0 ? `in line, in ${duration(row.in_s)}` : `in line for ${duration(-row.in_s)}` }))];
  list($("homes"), homes.slice(0, 30), (row) => row.home, () => make("li", "", make("span"), make("span")), (node, row) => {
    set(node.firstChild, row.home);
    set(node.lastChild, row.text);
  });
}

function orders() {
  $("orders-card").hidden = !(state.orders.length || state.may_order);
  $("order").hidden = !state.may_order;
  list($("orders"), state.orders, (row) => `${row.kind} ${row.pattern}`, () => make("li", "", make("span"), make("span")), (node, row) => {
    set(node.firstChild, `${row.kind} ${row.pattern}`);
    set(node.lastChild, `${row.by}: ${row.because}; ${row.until === null ? "until released" : `for ${duration(row.until - state.now)} more`}`);
  });
}

async function order(event) {
  event.preventDefault();
  const body = JSON.stringify({ action: event.submitter.value, pattern: $("pattern").value.trim(), because: $("because").value.trim() });
  set($("ordered"), "...");
  try {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const response = await fetch("/api/orders", { method: "POST", headers, body, signal: AbortSignal.timeout(10000) });
    const said = await response.text();
    set($("ordered"), response.ok ? `Done: ${event.submitter.value}.` : JSON.parse(said).error);
  } catch (error) {
    set($("ordered"), `The crawl did not answer: ${error.message}`);
  }
}

function events(id, rows) {
  list($(id), rows, (e) => `${e.at} ${e.kind} ${e.what}`, (e) => {
    const node = make("li", e.level, make("time", "", clock(e.at)), make("div", "", make("b", "", e.what), make("br"), make("span", "", e.text)));
    return node;
  }, () => {});
}

// Origins: the longest waits of the state, or what /api/origins finds for a filter.

function origins(rows) {
  list($("rows"), rows, (row) => row.origin, (row) => {
    const name = make("button", "origin");
    name.type = "button";
    name.addEventListener("click", () => ask(name.dataset.url));
    const cell = make("td", "", name, make("div", "why", make("span", "tag"), make("span")), make("div", "why"));
    return make("tr", "", cell, make("td", "number"), make("td", "number"), make("td", "number"));
  }, (node, row) => {
    const [cell, urls, since, until] = node.children;
    const [name, why, more] = cell.children;
    set(name, row.origin);
    name.dataset.url = row.url || row.origin;
    why.firstChild.className = `tag ${GRAVE[row.reason] || ""}`;
    set(why.firstChild, words(row.reason));
    set(why.lastChild, row.because || row.text);
    set(more, details(row));
    [["URLs", urls], ["waited", since], ["still waits", until]].forEach(([label, each]) => { each.dataset.label = label; });
    set(urls, number(row.urls + row.permits));
    set(since, duration(row.since_s));
    set(until, row.until_s === null ? "not known" : row.until_s > 0 ? duration(row.until_s) : "now");
  });
}

function details(row) {
  const parts = [];
  if (row.scope && !row.scope.endsWith(row.origin)) parts.push(`scope: ${row.scope}`);
  if (row.ahead) parts.push(`${number(row.ahead)} ahead`);
  if (row.in_flight) parts.push(`${number(row.in_flight)} in flight`);
  if (row.failures) parts.push(`failed ${row.failures === 1 ? "once" : `${row.failures} times`}`);
  if (row.rule && row.rule.line) parts.push(row.rule.text);
  return parts.join(" · ");
}

const filtered = () => Boolean($("filter").value.trim() || $("reason").value);
let filtering = 0;
async function showOrigins() {
  if (!filtered()) { noted(state.origins); return; }
  const turn = ++filtering;
  const query = new URLSearchParams({ q: $("filter").value.trim(), reason: $("reason").value, limit: "100" });
  try {
    const found = await get(`/api/origins?${query}`);
    if (turn === filtering && filtered()) noted(found.origins);
  } catch { /* The next question says that the connection is lost. */ }
}
function noted(rows) {
  origins(rows);
  const among = state.waiting.reduce((sum, row) => sum + row.origins, 0);
  set($("rows-note"), rows.length ? (among > rows.length ? `The ${number(rows.length)} that wait longest of ${many(among, "origin")}. To look another one up, filter by its URL.` : "")
    : filtered() ? "No origin that waits long matches." : "No origin waits.");
}
function reasons() {
  list($("reason"), [{ reason: "", text: "all reasons" }, ...state.waiting], (row) => row.reason, (row) => { const node = make("option"); node.value = row.reason; return node; },
    (node, row) => set(node, row.reason ? words(row.reason) : row.text));
}

// The search box.

async function ask(url) {
  $("url").value = url;
  $("answer").hidden = false;
  set($("answer-url"), url);
  set($("answer-verdict"), "...");
  let found;
  try {
    found = await get(`/api/explain?${new URLSearchParams({ url })}`);
  } catch {
    found = { error: "The crawler does not respond." };
  }
  set($("answer-verdict"), found.error || found.verdict);
  set($("answer-text"), found.explanation || "");
  $("answer-text").hidden = !found.explanation;
  const q = found.queue, facts = [];
  if (found.task) facts.push(["the URL", found.task]);
  if (q) facts.push(["its origin", `${many(q.urls, "URL")} wait${q.urls === 1 ? "s" : ""} for ${q.text}`],
    ["since", duration(q.since_s)], ["until", q.until_s === null ? "not known" : duration(q.until_s)], ["why", q.because || ""], ["", details(q)]);
  list($("answer-facts"), facts.filter(([, text]) => text).flatMap(([name, text]) => [["dt", name, name], ["dd", text, name]]), ([tag, , name]) => tag + name,
    ([tag]) => make(tag), (node, [, text]) => set(node, text));
  events("answer-events", found.events || []);
  $("answer").scrollIntoView({ block: "nearest" });
}
function closeAnswer() { $("answer").hidden = true; $("url").value = ""; }

// Once a second.

function show() {
  document.title = `${state.notices[0].level === "info" ? "" : "(!) "}${number(state.rates.requests)}/s, ${number(state.gate.waiting + (state.frontier ? state.frontier.waiting : 0))} waiting - polite`;
  set($("agent"), state.agent);
  set($("about"), `polite ${state.version}, served for ${duration(state.uptime_s)}; ${number(state.gate.memory / 1048576)} MiB of rules`);
  notices(); tiles(); timeline(); side(); orders(); reasons(); showOrigins();
  events("events", state.events);
  $("events-note").hidden = state.events.length > 0;
}

function live(name, text) {
  $("live").className = `dot ${name}`;
  set($("live"), text);
  document.body.classList.toggle("stale", name === "off");
}

// The token is in the address once (`/#TOKEN`), or typed; then it is in a header, and in no address, cookie or file.
let token = sessionStorage.getItem("token") || "";
if (location.hash.length > 1 && location.hash !== "#origins") {
  token = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", "/");
}
async function get(path) {
  const response = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, signal: AbortSignal.timeout(10000) });
  $("login").hidden = response.status !== 401;
  if (response.status === 401) {
    $("wrong").hidden = !token;
    token = "";
    $("token").focus();
  } else if (token) sessionStorage.setItem("token", token);
  return response.json();
}

async function next() {
  try {
    const found = await get(`/api/status?after=${count}`);
    if (found.second < count) { seconds = []; count = 0; return setTimeout(next, 0); }
    seconds.push(...found.timeline);
    count = found.second;
    if (seconds.length > LENGTH) seconds.splice(0, seconds.length - LENGTH);
    lastAt = Date.now();
    if (!paused) {
      state = found;
      live("on", "live");
      show();
    }
  } catch { /* Said below, when it lasts. */ }
  if ($("login").hidden) setTimeout(next, 1000);
}
setInterval(() => {
  const silent = (Date.now() - lastAt) / 1000;
  if (lastAt && silent > 4) live("off", `no connection for ${duration(silent)}`);
}, 1000);

function pause() {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  set($("pause"), paused ? "Go on" : "Pause");
  if (paused) live("", "paused");
}

// Keyboard and mouse.

$("ask").addEventListener("submit", (event) => { event.preventDefault(); const url = $("url").value.trim(); if (url) ask(url); });
$("order").addEventListener("submit", order);
$("login").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value; $("token").value = ""; next(); });
$("answer-close").addEventListener("click", closeAnswer);
$("pause").addEventListener("click", pause);
$("filter").addEventListener("input", () => state && showOrigins());
$("reason").addEventListener("change", () => state && showOrigins());
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    if (event.target.id === "filter") { $("filter").value = ""; $("reason").value = ""; if (state) showOrigins(); }
    closeAnswer();
    if (typing) event.target.blur();
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    if (event.key === "/") { event.preventDefault(); $("url").focus(); $("url").select(); }
    else if (event.key === "f") { event.preventDefault(); $("filter").focus(); }
    else if (event.key === "p") pause();
  }
});
const plot = $("timeline");
function point(at) { cursor = at; if (state) { const { buckets, size } = bucketed(); readout(buckets, size); } }
plot.addEventListener("pointermove", (event) => { const box = plot.getBoundingClientRect(); point(LENGTH * (event.clientX - box.left) / box.width); });
plot.addEventListener("pointerleave", () => point(null));
plot.addEventListener("blur", () => point(null));
plot.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -4, ArrowRight: 4 }[event.key];
  if (step) { event.preventDefault(); point(Math.min(LENGTH - 1, Math.max(0, (cursor === null ? LENGTH - 3 : cursor) + step))); }
});
next();
