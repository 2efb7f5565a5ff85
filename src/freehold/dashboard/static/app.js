// The script of the dashboard: times, keys, ticks, copying, live updates. Every page works without it.

const root = document.body.dataset.root ?? "";
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// -- times: ages and the zone of the browser ------------------------------------------------

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function age(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const [unit, length] = UNITS.find(([, length]) => size >= length) ?? UNITS[3];
  const text = `${Math.floor(size / length)} ${unit}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

function showTimes(within = document) {
  const now = Date.now();
  for (const element of $$("time[datetime]", within)) {
    const at = new Date(element.dateTime);
    element.title ||= element.textContent;
    const isToday = at.toDateString() === new Date(now).toDateString();
    const text = element.dataset.style === "ago"
      ? age((now - at) / 1000)
      : (isToday ? "" : `${day.format(at)} `) + clock.format(at);
    if (element.textContent !== text) element.textContent = text;
  }
}

// -- copying --------------------------------------------------------------------------------

function showCopyButtons(within = document) {
  if (navigator.clipboard) for (const button of $$("button.copy[hidden]", within)) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1500);
});

// -- ticks ----------------------------------------------------------------------------------

const ticks = () => $$("main:not(.probe) input[name=ids]");
let lastTick = null;

function showTicks(within = document) {
  const all = $("#tick-all", within);
  if (!all) return;
  all.hidden = false;
  const count = ticks().filter((each) => each.checked).length;
  all.checked = count > 0 && count === ticks().length;
  all.indeterminate = count > 0 && !all.checked;
  for (const element of $$("[data-ticked]", within)) element.textContent = count ? `${count} ticked` : "tick some jobs";
  for (const button of $$("button[data-needs-ticks]")) button.disabled = count === 0;
}

document.addEventListener("click", (event) => {
  const box = event.target;
  if (box.id === "tick-all") {
    for (const each of ticks()) each.checked = box.checked;
  } else if (box.name === "ids") {
    const boxes = ticks();
    if (event.shiftKey && lastTick) {
      const [from, to] = [boxes.indexOf(lastTick), boxes.indexOf(box)].sort((a, b) => a - b);
      for (const each of boxes.slice(Math.max(from, 0), to + 1)) each.checked = box.checked;
    }
    lastTick = box;
  } else return;
  showTicks();
});

// -- keys -----------------------------------------------------------------------------------

const keysBox = $("#keys");
const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private mode */ } };
if (keysBox) {
  keysBox.checked = stored("freehold-keys") !== "off";
  keysBox.addEventListener("change", () => store("freehold-keys", keysBox.checked ? "on" : "off"));
}

let after = null;
const rows = () => $$("main tbody tr").filter((row) => row.querySelector("a"));

function moveRow(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("chosen"));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  for (const row of all) row.classList.toggle("chosen", row === next);
  next.querySelector("a").focus();
  next.scrollIntoView({ block: "nearest" });
}

const chosenRow = () => rows().find((row) => row.classList.contains("chosen"));

const KEYS = {
  "/": () => $("#search")?.focus(),
  "?": () => { location.href = `${root}/help`; },
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => { const box = chosenRow()?.querySelector("input[name=ids]"); if (box) { box.checked = !box.checked; showTicks(); } },
  w: () => chosenRow()?.querySelector("[data-why]")?.click(),
  r: () => $("[data-verb=retry]")?.click(),
  c: () => $("[data-verb=cancel]")?.click(),
  n: () => $("[data-new]")?.click(),
  p: () => $("#live-button")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (!keysBox?.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (after === "g") {
    after = null;
    const link = $$("nav.side a[data-key]").find((each) => each.dataset.key === event.key);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") { after = "g"; setTimeout(() => { after = null; }, 1200); return; }
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});

// -- the log of a job: it follows new lines until it is scrolled up ---------------------------------

let following = true;

function followLog(within = document) {
  const lines = $("#log-lines", within), box = $("#follow", within);
  if (!lines || !box) return;
  box.closest(".follow").hidden = false;
  box.checked = following;
  if (following) lines.scrollTop = lines.scrollHeight;
}

document.addEventListener("change", (event) => {
  if (event.target.id !== "follow") return;
  following = event.target.checked;
  followLog();
});
document.addEventListener("scroll", (event) => {
  if (event.target.id !== "log-lines") return;
  const { scrollTop, scrollHeight, clientHeight } = event.target;
  following = scrollTop + clientHeight >= scrollHeight - 4;
  if ($("#follow")) $("#follow").checked = following;
}, true);

// -- small screens: the list of pages is closed at first --------------------------------------

const sections = $("details.sections");
const narrow = matchMedia("(max-width: 48rem)");
const fitSections = () => { if (sections) sections.open = !narrow.matches; };
narrow.addEventListener("change", fitSections);

// -- live: a message of the stream makes the page load itself again -----------------------------
//
// Not while updates are paused, a row is ticked, or a form of the page is in use. Without a stream
// the page looks by itself.

const stream = $("#stream");
const live = $("#live");
const FALLBACK_SECONDS = 1.5;
const TURN_MILLISECONDS = 1000;
let paused = false, waiting = 0, lastLoad = 0, timer = null, heard = false;
let resting = 0, lookedAt = 0;  // seconds until the service looks again, if they are many

function isBusy() {
  const focus = document.activeElement;
  return ticks().some((each) => each.checked)
    || !!focus?.closest?.("main form") && focus.matches("input, select, textarea")
    || !!$("main dialog[open], main details.form[open]")
    || !window.getSelection().isCollapsed;
}

function showLive(kind, text) {
  if (!live) return;
  live.hidden = false;
  live.className = `live ${kind}`;
  $("#live-text").textContent = text;
  $("#live-button").setAttribute("aria-pressed", String(paused));
}

function showUpdated() {
  showLive("", resting ? `updated ${age((Date.now() - lookedAt) / 1000)}` : "live");
}

function changed() {
  if (paused || isBusy()) {
    waiting += 1;
    showLive("paused", `paused, ${waiting} change${waiting === 1 ? "" : "s"}`);
    return;
  }
  if (timer) return;
  timer = setTimeout(() => {
    timer = null;
    lastLoad = Date.now();
    waiting = 0;
    showUpdated();
    window.htmx?.trigger(stream, "change-seen");
  }, Math.max(0, lastLoad + TURN_MILLISECONDS - Date.now()));
}

// -- nothing moves under the pointer ------------------------------------------------------------
//
// New content is laid out beside the page, invisibly, before it replaces the old. If what the
// pointer is on would be elsewhere, the page stays as it is until the pointer moves on.

const page = $("#page");
const POINTED = "a, button, summary, input, select, label, tr, li, dd, rect, h2, p";
let pointer = null, held = null;

document.addEventListener("pointermove", (event) => {
  pointer = event.pointerType === "mouse" ? [event.clientX, event.clientY] : null;
  if (held && pointed() !== held) { held = null; changed(); }
});
document.documentElement.addEventListener("pointerleave", () => {
  pointer = null;
  if (held) { held = null; changed(); }
});

function pointed() {
  const found = pointer && document.elementFromPoint(...pointer)?.closest(POINTED);
  return found && page?.contains(found) ? found : null;
}

// How to find the same element in other content: the id above it, and its number below that.
function place(element, within) {
  const anchor = element.closest("[id]");
  const known = anchor && anchor !== within && within.contains(anchor) ? anchor : within;
  const number = known === element ? -1 : $$(element.localName, known).indexOf(element);
  return (other) => {
    const base = known === within ? other : other.querySelector(`#${CSS.escape(known.id)}`);
    return number < 0 ? base : base && $$(element.localName, base)[number];
  };
}

function wouldMove(element, text) {
  const probe = page.cloneNode(false);
  probe.removeAttribute("id");
  probe.classList.add("probe");
  probe.innerHTML = text;
  probe.style.width = `${page.offsetWidth}px`;
  page.parentElement.append(probe);
  for (const open of $$("details[open]", page)) {
    const same = place(open, page)(probe);
    if (same) same.open = true;
  }
  dress(probe);
  const now = element.getBoundingClientRect(), from = page.getBoundingClientRect();
  const then = place(element, page)(probe)?.getBoundingClientRect(), to = probe.getBoundingClientRect();
  probe.remove();
  return !then || Math.abs((then.top - to.top) - (now.top - from.top)) > 2
    || Math.abs((then.left - to.left) - (now.left - from.left)) > 8;
}

page?.addEventListener("htmx:before:swap", (event) => {
  const element = pointed(), text = event.detail.ctx?.text;
  if (!element || typeof text !== "string" || !wouldMove(element, text)) return;
  event.preventDefault();
  if (page._htmx) page._htmx.ptag = "-";  // this content was not shown: the next request must not name it as shown
  held = element;
  waiting += 1;
  showLive("paused", "held under the pointer");
});

// Browsers open at most six connections to a host. So at most four tabs have a stream; the others
// look by themselves, until one of the four is closed or hidden: as rarely as the service, if that rests.

const STREAMS = 4;
const untilHidden = () => new Promise((resolve) => {
  document.addEventListener("visibilitychange", resolve, { once: true });
});

function openStream() {
  stream.setAttribute("hx-sse:connect", stream.dataset.connect);
  window.htmx?.process(stream);
}

function takesSlot(name) {
  return new Promise((resolve) => {
    navigator.locks.request(name, { ifAvailable: true }, (lock) => { resolve(!!lock); return lock && untilHidden(); });
  });
}

async function connect() {
  if (!navigator.locks) return openStream();
  for (let slot = 0; slot < STREAMS; slot += 1) {
    if (await takesSlot(`freehold-stream-${slot}`)) return openStream();
  }
  await navigator.locks.request("freehold-stream-0", () => { openStream(); return untilHidden(); });
}

page?.addEventListener("htmx:config:request", ({ detail }) => {
  if (!heard) detail.ctx.request.headers["X-Looks-By-Itself"] = "true";
});
page?.addEventListener("htmx:before:response", ({ detail }) => {
  if (heard) return;
  resting = Number(detail.ctx.response.headers.get("Retry-After"));
  if (!resting) lookedAt = Date.now();
});

if (stream) {
  lookedAt = Date.now();
  showUpdated();
  connect();
  stream.addEventListener("opened", () => {
    if (heard) changed();
    [heard, resting] = [true, 0];
    if (paused) showLive("paused", "paused"); else showUpdated();
  });
  stream.addEventListener("resting", (event) => {
    [resting, lookedAt] = [Number(event.detail.data), Date.now()];
    if (live.classList.length === 1) showUpdated();
  });
  stream.addEventListener("changed", changed);
  stream.addEventListener("away", () => showLive("away", "the store is away"));
  stream.addEventListener("htmx:sse:error", () => showLive("away", "no connection"));
  setInterval(() => { if (!heard && !document.hidden && !paused && !isBusy()) changed(); }, FALLBACK_SECONDS * 1000);
  setInterval(() => { if (waiting && !held && !paused && !isBusy()) changed(); }, TURN_MILLISECONDS);
  $("#live-button").addEventListener("click", () => {
    paused = !paused;
    if (paused) showLive("paused", "paused");
    else changed();
  });
  setInterval(() => { if (resting && live.classList.length === 1) showUpdated(); }, 1000);  // neither paused nor away
  document.addEventListener("htmx:after:swap", () => dress());
}

// What the script adds to the content from the server.
function dress(within = document) {
  showTimes(within);
  showCopyButtons(within);
  showTicks(within);
  followLog(within);
}

fitSections();
dress();
setInterval(() => showTimes(), 1000);
