// Heat maps over time, and bars.

const SHADES = 48;

// Empty cells are written as a negative number of them.
const unpacked = (cells) => cells.flatMap((count) => (count < 0 ? Array(-count).fill(0) : [count]));
const heats = new WeakMap();
const heatOf = (chart) => {
  if (!heats.has(chart)) {
    const cells = chart.heat.cells.map(unpacked);
    const most = cells.reduce((most, column) => column.reduce((a, b) => Math.max(a, b), most), 1);
    heats.set(chart, { cells, most });
  }
  return heats.get(chart);
};

// Three colours of the style sheet, and all between them.
const shades = () => {
  const stops = [0, 1, 2].map((stop) => css(`--heat-${stop}`).split(",").map(Number));
  return Array.from({ length: SHADES }, (_, place) => {
    const at = (place / (SHADES - 1)) * 2;
    const [low, high] = [stops[Math.min(1, Math.floor(at))], stops[Math.min(1, Math.floor(at)) + 1]];
    const part = at - Math.min(1, Math.floor(at));
    return `rgb(${low.map((value, channel) => Math.round(value + (high[channel] - value) * part)).join(",")})`;
  });
};

// Steps that share a pixel show the most that any of them had.
const paintHeat = (chart, palette) => (u) => {
  const { ctx, bbox } = u;
  const axis = axisOf(chart);
  const { cells, most } = heatOf(chart);
  const tops = chart.heat.y_edges.map((edge) => Math.round(u.valToPos(edge, "y", true)));
  const across = (time) => Math.round(u.valToPos(time, "x", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  let [from, to, column] = [null, null, []];
  const paint = () => {
    column.forEach((count, row) => {
      if (!count) return;
      ctx.fillStyle = palette[Math.round((Math.log(count + 1) / Math.log(most + 1)) * (SHADES - 1))];
      ctx.fillRect(from, tops[row + 1], to - from, Math.max(1, tops[row] - tops[row + 1]));
    });
  };
  axis.time.forEach((time, step) => {
    const [left, right] = [across(time - axis.step_s / 2), across(time + axis.step_s / 2)];
    if (right < bbox.left || left > bbox.left + bbox.width) return;
    if (left !== from) {
      paint();
      [from, column] = [left, []];
    }
    to = Math.max(right, left + 1);
    cells[step]?.forEach((count, row) => { column[row] = Math.max(column[row] ?? 0, count); });
  });
  paint();
  axis.phases.filter((phase) => phase.disturbed).forEach((phase) => hatch(u, phase));
  ctx.restore();
};

const drawHeat = (chart, place, width) => {
  const edges = chart.heat.y_edges;
  const axis = axisOf(chart);
  const { cells, most } = heatOf(chart);
  const key = element("p", "heat-key");
  const words = element("span", "heat-words", `1 to ${show(most)} requests in a spot`);
  key.append(element("span", "ramp"), words);
  const spot = (u) => {
    const { idx, top } = u.cursor;
    if (idx === null || idx === undefined || top < 0) { words.textContent = `1 to ${show(most)} requests in a spot`; return; }
    const value = u.posToVal(top, "y");
    const row = Math.max(0, edges.findLastIndex((edge) => edge <= value));
    const count = cells[idx]?.[row] ?? 0;
    const all = (cells[idx] ?? []).reduce((a, b) => a + b, 0);
    words.textContent = `${clock(axis.time[idx], axis)}${phaseName(axis.time[idx], axis)}: ${show(count)} of ${show(all)} took ${show(edges[row])} to ${show(edges[row + 1] ?? edges[row])} ms`;
  };
  const plot = new uPlot({
    width,
    height: HEIGHT,
    padding: [PHASES_ABOVE, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: `run${chart.axis ?? ""}`, scales: ["x", null] }, drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: false }, y: { distr: 3, range: [edges[0], edges[edges.length - 1]] } },
    axes: axes(chart, true),
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { drawClear: [phaseBands(axis)], drawAxes: [paintHeat(chart, shades())], draw: [drawn], setScale: [follow(chart)], setCursor: [spot] },
  }, [axis.time, axis.time.map(() => edges[0])], place);
  place.append(key);
  return plot;
};

// Bars need no canvas: they are a list, and read as one.
const drawBars = (chart, place) => {
  const [line] = chart.lines;
  const most = Math.max(...line.values);
  const list = element("dl", "bars");
  line.x_names.forEach((name, index) => {
    const row = element("div");
    const value = element("dd", "", show(line.values[index]));
    const strip = element("i");
    strip.style.width = `${(line.values[index] / most) * 100}%`;
    strip.style.background = colour(line.role);
    const holder = element("span", "strip");
    holder.append(strip);
    row.append(element("dt", "", name), holder, value);
    list.append(row);
  });
  place.append(list);
  place.closest("figure").dataset.drawn = "true";
  return null;
};
