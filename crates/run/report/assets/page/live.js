// The page of a run that goes on: it asks for itself again and takes over what is new, and leaves the reader where he is.

const EVERY_MS = 4000;
const MOST_FAILURES = 6;
const live = { url: root.dataset.live, failures: 0, at: Date.now(), known: "" };
const status = document.getElementById("live");

// Where the focus is, so that it can be found again: by id, or as the n-th thing of its kind below something with one.
const pathOf = (node) => {
  if (!node || node === document.body) return null;
  const owner = node.closest("[id]");
  if (!owner) return null;
  if (owner === node) return { id: node.id };
  const kind = node.localName + (node.classList[0] ? "." + CSS.escape(node.classList[0]) : "");
  return { id: owner.id, kind, place: [...owner.querySelectorAll(kind)].indexOf(node) };
};
const found = (path) => {
  const owner = path && document.getElementById(path.id);
  return path?.kind ? owner?.querySelectorAll(path.kind)[path.place] : owner;
};

// Charts keep the very place that they are drawn in.
const keepPlots = (fresh) => fresh.querySelectorAll("figure.chart").forEach((figure) => {
  const old = document.getElementById(figure.id);
  const place = old?.querySelector(".plot");
  if (!place) return;
  place.style.minHeight = `${place.offsetHeight}px`;
  figure.querySelector(".plot").replaceWith(place);
  if (old.dataset.drawn) figure.dataset.drawn = old.dataset.drawn;
});
const takeOver = (fresh) => {
  const focus = pathOf(document.activeElement);
  const open = [...document.querySelectorAll("main details[open]")].map((details) => pathOf(details.querySelector("summary")));
  const cursors = [...plots].filter(([, plot]) => plot.cursor.idx !== null && plot.cursor.idx !== undefined && plot.cursor.left >= 0);
  const cursor = cursors.map(([id, plot]) => [id, plot.cursor.left, plot.cursor.top])[0];
  const sideways = [...document.querySelectorAll("main .scroll")].map((box) => [pathOf(box), box.scrollLeft]).filter(([, left]) => left > 0);
  // What the reader looks at stays where it is, whatever grows above it.
  const isAbove = (node) => node.getBoundingClientRect().top < innerHeight / 2;
  const sight = scrollY > 0 && [...document.querySelectorAll("main > section[id], main figure.chart[id]")].filter(isAbove).at(-1);
  const top = sight ? sight.getBoundingClientRect().top : 0;
  const followed = [...views].filter(([number, view]) => view.max >= whole(data.axes ? data.axes[number] : data).max);
  const section = (id, page) => page.querySelector(`main > section[id="${id}"]`);
  const main = document.querySelector("main");
  keepPlots(fresh);
  fresh.querySelectorAll("main > section[id]").forEach((its) => {
    const mine = section(its.id, document);
    const taken = document.importNode(its, false);
    taken.append(...its.childNodes);
    if (mine) mine.replaceWith(taken); else main.insertBefore(taken, document.getElementById("zoom"));
    here.observe(taken);
  });
  data = readData(fresh);
  byId = new Map(data.charts.map((chart) => [chart.id, chart]));
  // Who looks at the end of what there was wants to see what is new.
  followed.forEach(([number, view]) => views.set(number, { min: view.min, max: whole(data).max }));
  fillBar();
  drawAll();
  watchSight();
  open.forEach((path) => { const details = found(path)?.closest("details"); if (details) details.open = true; });
  sideways.forEach(([path, left]) => { const box = found(path); if (box) box.scrollLeft = left; });
  if (cursor) plots.get(cursor[0])?.setCursor({ left: cursor[1], top: cursor[2] });
  found(focus)?.focus({ preventScroll: true });
  const place = sight && document.getElementById(sight.id);
  if (place) scrollBy({ top: place.getBoundingClientRect().top - top, behavior: "instant" });
};

const told = (text, mood) => {
  if (!status) return;
  status.textContent = text;
  status.className = mood;
};
const ask = async () => {
  const begun = performance.now();
  try {
    const answer = await fetch(live.url, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const text = await answer.text();
    live.failures = 0;
    if (text !== live.known) {
      live.known = text;
      const fresh = new DOMParser().parseFromString(text, "text/html");
      takeOver(fresh);
      root.dataset.updates = String(Number(root.dataset.updates ?? 0) + 1);
      if ("ended" in fresh.documentElement.dataset) root.dataset.ended = "true";
    }
  } catch {
    live.failures += 1;
  }
  if (root.dataset.ended) { told("The run has ended", "ended"); say("The run has ended. This is its report."); return; }
  if (live.failures >= MOST_FAILURES) { told("No longer updated: the run, or its server, has gone", "lost"); return; }
  if (live.failures) told("No answer; asking again", "lost"); else told("Live", "running");
  // A page that takes long to take over is asked for less often.
  const wait = Math.max(EVERY_MS * (live.failures + 1), 10 * (performance.now() - begun));
  setTimeout(whenSeen, wait);
};
// Nobody looks at a hidden page.
const whenSeen = () => {
  if (!document.hidden) ask();
  else document.addEventListener("visibilitychange", ask, { once: true });
};
const beginLive = () => {
  if (!live.url) return;
  if (root.dataset.ended) { told("The run has ended", "ended"); return; }
  told("Live", "running");
  setTimeout(whenSeen, EVERY_MS);
};
