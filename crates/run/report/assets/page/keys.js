// Everything by keyboard: the cursor and the stretch of time of the focused chart, and the way through the page.

const spoken = (chart, plot, index) => {
  const axis = axisOf(chart);
  const x = plot.data[0][index];
  const place = onTime(chart) ? `${clock(x, axis)}${phaseName(x, axis)}` : chart.kind === "distribution" ? `${+((1 - 10 ** -x) * 100).toFixed(3)} %` : `${show(x)} ${chart.x_label ?? ""}`;
  if (chart.kind === "heat") return plot.root.parentNode.querySelector(".heat-words").textContent;
  const values = chart.lines.map((line, number) => [line.name, plot.data[number + 1][index]]).filter(([, value]) => value !== null && value !== undefined);
  return `${place}: ${values.map(([name, value]) => `${name} ${show(value)}`).join(", ") || "nothing"} ${chart.unit}`;
};
const moveCursor = (chart, plot, by) => {
  const { min, max } = plot.scales.x;
  const inside = plot.data[0].map((x, index) => [x, index]).filter(([x]) => x >= min && x <= max).map(([, index]) => index);
  if (!inside.length) return;
  const [first, last] = [inside[0], inside[inside.length - 1]];
  const now = plot.cursor.idx ?? (by > 0 ? first - 1 : last + 1);
  const index = Math.min(last, Math.max(first, now + by));
  const left = plot.valToPos(plot.data[0][index], "x");
  const old = plot.cursor.top;
  plot.setCursor({ left, top: old >= 0 && chart.kind === "heat" ? old : plot.over.clientHeight / 2 }, true, true);
  say(spoken(chart, plot, index));
};
// Closer by a half, or twice as far, around the cursor; or along by a quarter.
const zoomBy = (chart, plot, factor) => {
  const { min, max } = viewOf(chart.axis ?? 0);
  const at = plot.cursor.idx === null || plot.cursor.idx === undefined ? (min + max) / 2 : plot.data[0][plot.cursor.idx];
  setView(chart.axis ?? 0, { min: at - (at - min) * factor, max: at + (max - at) * factor });
  const view = viewOf(chart.axis ?? 0);
  say(`All charts show ${clock(view.min, axisOf(chart))} to ${clock(view.max, axisOf(chart))}.`);
};
const pan = (chart, part) => {
  const [view, all] = [viewOf(chart.axis ?? 0), whole(axisOf(chart))];
  const by = Math.min(Math.max((view.max - view.min) * part, all.min - view.min), all.max - view.max);
  setView(chart.axis ?? 0, { min: view.min + by, max: view.max + by });
};
const chartKey = (event) => {
  const figure = event.target.closest("figure.chart");
  const [chart, plot] = [byId.get(figure.dataset.chart), plots.get(figure.dataset.chart)];
  if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const far = plot.data[0].length;
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -far, End: far }[event.key];
  const time = onTime(chart);
  if (time && event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) pan(chart, event.key === "ArrowLeft" ? -0.25 : 0.25);
  else if (steps) moveCursor(chart, plot, steps);
  else if (chart.kind === "heat" && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    const top = Math.min(Math.max((plot.cursor.top >= 0 ? plot.cursor.top : 0) + (event.key === "ArrowUp" ? -6 : 6), 0), plot.over.clientHeight);
    plot.setCursor({ left: Math.max(plot.cursor.left, 0), top }, true, true);
    say(spoken(chart, plot, plot.cursor.idx));
  } else if (time && (event.key === "+" || event.key === "=")) zoomBy(chart, plot, 0.5);
  else if (time && event.key === "-") zoomBy(chart, plot, 2);
  else return;
  event.preventDefault();
};
document.addEventListener("keydown", (event) => { if (event.target.closest?.("figure.chart .plot")) chartKey(event); });

// From one heading to the next, or back: from the one that has the focus, else from where the page is scrolled to.
const jump = (by) => {
  const stops = [...document.querySelectorAll("main h1, main h2.section")].filter((stop) => stop.offsetParent !== null);
  const line = 120;
  let now = stops.indexOf(document.activeElement);
  if (now < 0) now = stops.findLastIndex((stop) => stop.getBoundingClientRect().top < line) + (by < 0 ? 1 : 0);
  const stop = stops[Math.min(Math.max(now + by, 0), stops.length - 1)];
  if (!stop) return;
  stop.tabIndex = -1;
  stop.focus({ preventScroll: true });
  stop.scrollIntoView({ block: "start" });
};
const help = document.getElementById("keys");
const pageKeys = {
  Escape: seeAll,
  0: seeAll,
  j: () => jump(1),
  k: () => jump(-1),
  t: otherTheme,
  "?": () => help?.showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select, dialog")) return;
  const act = pageKeys[event.key];
  if (!act) return;
  act();
  event.preventDefault();
});
document.getElementById("help")?.addEventListener("click", () => help.showModal());
document.getElementById("see-all")?.addEventListener("click", seeAll);

// Where in the page the reader is.
const links = new Map([...document.querySelectorAll(".bar nav a")].map((link) => [link.hash.slice(1), link]));
const here = new IntersectionObserver((entries) => entries.forEach((entry) => {
  const link = links.get(entry.target.id);
  if (!link) return;
  if (entry.isIntersecting) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
}), { rootMargin: "-20% 0px -70% 0px" });
document.querySelectorAll("main section[id]").forEach((section) => here.observe(section));
