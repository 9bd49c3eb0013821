// Draws all charts: those in sight first, the others while nobody waits. Sizes and colours follow the window, the
// system, the button, and the printer.

const drawers = { time: drawTime, scatter: drawScatter, lines: drawLines, distribution: drawDistribution, cdf: drawCdf, heat: drawHeat, bars: drawBars };
const SLICE_MS = 12;
let waiting = [];
let turn = 0;

const drawOne = (figure) => {
  const chart = byId.get(figure.dataset.chart);
  const place = figure.querySelector(".plot");
  place.textContent = "";
  if (!chart || !hasNumbers(chart)) {
    place.append(element("p", "empty", "Nothing was measured here."));
    figure.dataset.drawn = "empty";
    return;
  }
  const plot = drawers[chart.kind](chart, place, Math.max(place.clientWidth, 200));
  if (!plot) return;
  plots.set(chart.id, plot);
  const view = views.get(chart.axis ?? 0);
  if (view && onTime(chart)) plot.setScale("x", view);
};
const inSight = (figure) => {
  const { top, bottom } = figure.getBoundingClientRect();
  return bottom > -200 && top < innerHeight + 200;
};
const finished = () => {
  root.dataset.charts = String(data.charts.length);
  root.dataset.drawnMs ??= String(Math.round(performance.now()));
};
const drawRest = (mine) => {
  if (mine !== turn) return;
  const until = performance.now() + SLICE_MS;
  while (waiting.length && performance.now() < until) drawOne(waiting.shift());
  if (waiting.length) setTimeout(() => drawRest(mine), 0); else finished();
};
const drawAll = (atOnce) => {
  plots.forEach((plot) => plot.destroy());
  plots.clear();
  colours.clear();
  turn += 1;
  const figures = [...document.querySelectorAll("figure.chart")];
  const first = figures.filter((figure) => atOnce || inSight(figure));
  waiting = figures.filter((figure) => !first.includes(figure));
  waiting.forEach(({ dataset }) => { delete dataset.drawn; delete dataset.shows; });
  first.forEach(drawOne);
  root.dataset.firstMs ??= String(Math.round(performance.now()));
  drawRest(turn);
};
// What comes into sight does not wait for its turn.
const sight = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
  const place = waiting.indexOf(entry.target);
  if (place >= 0) drawOne(waiting.splice(place, 1)[0]);
}), { rootMargin: "400px" });
const watchSight = () => document.querySelectorAll("figure.chart").forEach((figure) => sight.observe(figure));

let widthThen = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === widthThen) return;
  widthThen = innerWidth;
  plots.forEach((plot, id) => {
    const place = document.querySelector(`#chart-${CSS.escape(id)} .plot`);
    plot.setSize({ width: Math.max(place.clientWidth, 200), height: plot.height });
  });
});

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const themeButton = document.getElementById("theme");
const restyle = (atOnce) => {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  drawAll(atOnce === true);
};
const otherTheme = () => { root.dataset.theme = isDark() ? "light" : "dark"; restyle(); };
themeButton.addEventListener("click", otherTheme);
system.addEventListener("change", () => restyle());

// On paper everything is light, as wide as the paper, and open.
let beforePrint;
addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("main details:not([open]):not(.long)")];
  beforePrint = { theme: root.dataset.theme, closed };
  closed.forEach((details) => { details.open = true; });
  root.dataset.theme = "light";
  root.classList.add("printing");
  restyle(true);
});
addEventListener("afterprint", () => {
  if (!beforePrint) return;
  beforePrint.closed.forEach((details) => { details.open = false; });
  if (beforePrint.theme) root.dataset.theme = beforePrint.theme; else delete root.dataset.theme;
  root.classList.remove("printing");
  beforePrint = undefined;
  restyle();
});
