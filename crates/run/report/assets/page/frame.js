// What stands around the lines of a chart: axes, phases, and stretches that must not be trusted.

const HEIGHT = 240;
const PHASES_ABOVE = 31;
const FONT = "11px system-ui, sans-serif";
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800, 2592000];

// Slanting lines, for what must not be trusted.
const hatching = (ctx, line, ground) => {
  const size = 7 * (devicePixelRatio || 1);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const brush = tile.getContext("2d");
  brush.fillStyle = ground;
  brush.fillRect(0, 0, size, size);
  brush.strokeStyle = line;
  brush.lineWidth = size / 7;
  for (const shift of [-size, 0, size]) {
    brush.moveTo(shift, size);
    brush.lineTo(shift + size, 0);
  }
  brush.stroke();
  return ctx.createPattern(tile, "repeat");
};

const bounds = (u, phase) => [
  Math.max(u.valToPos(phase.start, "x", true), u.bbox.left),
  Math.min(u.valToPos(phase.end, "x", true), u.bbox.left + u.bbox.width),
];
const hatch = (u, phase) => {
  const [left, right] = bounds(u, phase);
  if (right <= left) return;
  u.ctx.fillStyle = hatching(u.ctx, css("--hatch"), css("--hatched"));
  u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
};

// A band for every other phase, hatched where it was disturbed, and the names above, in two rows where one would be
// too narrow.
const phaseBands = (axis) => (u) => {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio || 1;
  const rowEnds = [-Infinity, -Infinity];
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "center";
  axis.phases.forEach((phase, index) => {
    const [left, right] = bounds(u, phase);
    if (right <= left) return;
    if (phase.disturbed) {
      hatch(u, phase);
    } else if (index % 2 === 0) {
      ctx.fillStyle = css("--band");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.fillStyle = css("--line");
    ctx.fillRect(Math.round(left), bbox.top - 3 * ratio, ratio, bbox.height + 3 * ratio);
    const short = phase.name.length > 20 ? phase.name.slice(0, 19) + "…" : phase.name;
    const half = ctx.measureText(short).width / 2;
    const edge = bbox.left + bbox.width + 10 * ratio;
    const middle = Math.min(Math.max((left + right) / 2, bbox.left + half), edge - half);
    const row = rowEnds.findIndex((end) => middle - half > end);
    if (row < 0) return;
    rowEnds[row] = middle + half + 5 * ratio;
    ctx.fillStyle = phase.disturbed ? css("--muted") : css("--soft");
    ctx.fillText(short, middle, bbox.top - (10 + 13 * row) * ratio);
  });
  ctx.restore();
};

// On a logarithmic axis: labels at 1, 2 and 5 of each decade, only at 1 when there are many decades.
const oneTwoFive = (scale) => (u, splits) => {
  const many = Math.log10(u.scales[scale].max / u.scales[scale].min) > (scale === "x" && narrow() ? 1.2 : 2.5);
  return splits.map((split) => {
    const exact = split / 10 ** Math.floor(Math.log10(split) + 1e-9);
    const lead = Math.round(exact);
    // An axis may begin at any value.
    if (Math.abs(exact - lead) > 0.01) return null;
    return lead === 1 || (!many && (lead === 2 || lead === 5)) ? split : null;
  });
};

const axes = (chart, yLog) => {
  const shared = {
    stroke: css("--soft"),
    font: FONT,
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--line"), width: 1, size: 4 },
  };
  const x = { ...shared, grid: { show: !onTime(chart), ...shared.grid }, size: 34 };
  if (onTime(chart)) Object.assign(x, { incrs: SECONDS, values: (_, ticks) => ticks.map((tick) => clock(tick, axisOf(chart))) });
  if (chart.x_label) {
    const ticks = (_, values) => values.map((value) => (value === null ? "" : show(value)));
    Object.assign(x, { label: chart.x_label, labelSize: 18, labelFont: FONT, size: 30, values: ticks });
  }
  // As wide as its longest label.
  const least = narrow() ? 40 : 52;
  const room = (_, labels) => Math.max(least, 14 + 6.6 * Math.max(0, ...(labels ?? []).map((label) => label.length)));
  const y = { ...shared, size: room, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : show(tick))) };
  if (yLog) Object.assign(y, { filter: oneTwoFive("y"), grid: { ...shared.grid, filter: oneTwoFive("y") }, ticks: { ...shared.ticks, filter: oneTwoFive("y") } });
  return [x, y];
};

// Says of a figure that it is drawn, and from where to where on its x axis.
const drawn = (u) => {
  const { dataset } = u.root.closest("figure");
  dataset.drawn = "true";
  dataset.shows = `${+u.scales.x.min.toPrecision(6)} ${+u.scales.x.max.toPrecision(6)}`;
};
