// Charts of lines over time, of points against a rate, and of the share of requests.

// From the lowest of several runs to the highest.
const runBands = (chart, time) => (u) => {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.globalAlpha = 0.16;
  for (const line of chart.lines) {
    if (!line.low) continue;
    ctx.fillStyle = colour(line.role);
    let stretch = [];
    const fill = () => {
      if (stretch.length > 1) {
        ctx.beginPath();
        const place = (value, index, low) => ctx.lineTo(u.valToPos(time[index], "x", true), u.valToPos(low ? Math.max(value, u.scales.y.min) : value, "y", true));
        stretch.forEach((index) => place(line.high[index], index, false));
        stretch.reverse().forEach((index) => place(line.low[index], index, true));
        ctx.fill();
      }
      stretch = [];
    };
    time.forEach((_, index) => { if (line.low[index] === null || line.high[index] === null) fill(); else stretch.push(index); });
    fill();
  }
  ctx.restore();
};

const dashOf = (line) => line.dash ?? (line.dashed ? [5, 4] : undefined);
const linearRange = (_, min, max) => (max === null || max <= 0 ? [0, 1] : [0, max * 1.08]);
const positive = (values) => values.some((value) => value !== null && value > 0);
const hasNumbers = (chart) => chart.kind === "heat" || chart.lines.some((line) => line.values.some((value) => value !== null));

const timeOptions = (chart, width, log) => {
  const axis = axisOf(chart);
  const few = axis.time.length <= 90;
  const highest = chart.lines.reduce((most, line) => (line.high ?? []).reduce((a, b) => Math.max(a, b ?? 0), most), 0);
  const range = (u, min, max) => linearRange(u, min, max === null ? max : Math.max(max, highest));
  return {
    width,
    height: HEIGHT,
    padding: [PHASES_ABOVE, labelRoom(chart), 0, 0],
    legend: { live: true },
    cursor: {
      sync: { key: `run${chart.axis ?? ""}` },
      focus: { prox: 24 },
      drag: { x: true, y: false },
      points: { size: 7 },
    },
    focus: { alpha: 0.35 },
    scales: { x: { time: false }, y: log ? { distr: 3 } : { range } },
    axes: axes(chart, log),
    series: [
      { label: "\u00a0", value: (_, time) => (time === null ? "" : `${clock(time, axis)}${phaseName(time, axis)}`) },
      ...chart.lines.map((line) => ({
        label: line.name,
        stroke: colour(line.role),
        width: line.dashed ? 1.5 : 1.75,
        dash: dashOf(line),
        spanGaps: false,
        paths: line.points ? () => null : undefined,
        points: line.points
          ? { show: true, size: 9, width: 0, fill: colour(line.role) }
          : { show: few && line.values.filter((value) => value !== null).length < 4 },
        value: shown,
      })),
    ],
    hooks: {
      drawClear: [phaseBands(axis), runBands(chart, axis.time)],
      draw: [endLabels(chart), drawn],
      setScale: [follow(chart)],
    },
  };
};

const drawTime = (chart, place, width) => {
  const log = chart.log && chart.lines.some((line) => positive(line.values));
  // A logarithmic axis has no zero.
  const values = chart.lines.map((line) => (log ? line.values.map((v) => (v !== null && v > 0 ? v : null)) : line.values));
  return new uPlot(timeOptions(chart, width, log), [axisOf(chart).time, ...values], place);
};

const drawScatter = (chart, place, width) => {
  const points = chart.lines.flatMap((line, number) => line.x.map((x, index) => [x, line.values[index], number]));
  const log = chart.log && chart.lines.some((line) => positive(line.values));
  const known = points.filter(([x, y]) => x !== null && y !== null && (!log || y > 0)).sort((a, b) => a[0] - b[0]);
  const paths = (number) => (u) => {
    const ratio = devicePixelRatio || 1;
    const path = new Path2D();
    for (const [x, y] of known.filter((point) => point[2] === number)) {
      const left = u.valToPos(x, "x", true);
      const top = u.valToPos(y, "y", true);
      path.moveTo(left + 3 * ratio, top);
      path.arc(left, top, 3 * ratio, 0, 2 * Math.PI);
    }
    return { stroke: null, fill: path, clip: null, flags: 1 };
  };
  const series = chart.lines.map((line, number) => {
    const stroke = colour(line.role);
    const label = chart.lines.length > 1 ? line.name : chart.unit;
    return { label, stroke, fill: stroke + "88", width: 0, paths: paths(number), points: { show: false }, value: shown };
  });
  const values = chart.lines.map((_, number) => known.map((point) => (point[2] === number ? point[1] : null)));
  return new uPlot({
    width,
    height: HEIGHT + 14,
    padding: [12, 12, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 9 } },
    scales: { x: { time: false, range: linearRange }, y: log ? { distr: 3 } : { range: linearRange } },
    axes: axes(chart, log),
    series: [{ label: chart.x_label, value: shown }, ...series],
    hooks: { draw: [drawn] },
  }, [known.map((point) => point[0]), ...values], place);
};

const curves = (chart) => chart.lines.map((line) => ({
  label: line.name, stroke: colour(line.role), width: 1.75, dash: dashOf(line), points: { show: false }, value: shown,
}));

// Over a number of any kind: all lines have the same x.
const drawLines = (chart, place, width) => {
  const { x } = chart.lines[0];
  const highest = chart.lines.reduce((most, line) => (line.high ?? []).reduce((a, b) => Math.max(a, b ?? 0), most), 0);
  const lowest = chart.lines.reduce((least, line) => (line.low ?? line.values).reduce((a, b) => Math.min(a, b ?? 0), least), 0);
  const range = (_, min, max) => [lowest * 1.08, Math.max(max ?? 1, highest) * 1.08];
  const log = chart.log && chart.lines.some((line) => positive(line.values));
  return new uPlot({
    width,
    height: HEIGHT + 14,
    padding: [12, 20, 0, 0],
    cursor: { focus: { prox: 24 }, drag: { x: false, y: false }, points: { size: 7 } },
    focus: { alpha: 0.35 },
    scales: { x: { time: false, range: (_, min, max) => [Math.min(0, min ?? 0), (max ?? 1) * 1.02] }, y: log ? { distr: 3 } : { range } },
    axes: axes(chart, log),
    series: [
      { label: "\u00a0", value: (u, value) => (shown(u, value) === "" ? "" : `${show(value)} ${chart.x_label}`) },
      ...curves(chart).map((curve) => ({ ...curve, points: { show: true, size: 5 } })),
    ],
    hooks: { drawClear: [runBands(chart, x)], draw: [drawn] },
  }, [x, ...chart.lines.map((line) => (log ? line.values.map((v) => (v > 0 ? v : null)) : line.values))], place);
};

// Percentiles: each further step of the axis is ten times rarer.
const rarity = (share) => -Math.log10(1 - share);
const drawDistribution = (chart, place, width) => {
  const marks = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
  const shares = chart.lines[0].x;
  const last = rarity(shares[shares.length - 1]);
  const label = (share) => `${+(share * 100).toFixed(3)} %`;
  const [x, y] = axes(chart, true);
  Object.assign(x, {
    label: undefined,
    size: 34,
    splits: () => marks.map(rarity).filter((mark) => mark <= last + 1e-9),
    values: (_, splits) => splits.map((split) => label(1 - 10 ** -split)),
  });
  return new uPlot({
    width,
    height: heightOf(chart),
    padding: [12, 30, 0, 0],
    cursor: { focus: { prox: 24 }, drag: { x: false, y: false }, points: { size: 7 } },
    focus: { alpha: 0.35 },
    scales: { x: { time: false, range: [0, last] }, y: { distr: 3, range: sharedRange(chart) } },
    axes: [x, y],
    series: [
      { label: "\u00a0", value: (u, value) => (shown(u, value) === "" ? "" : `${label(1 - 10 ** -value)} take no longer than`) },
      ...curves(chart),
    ],
    hooks: { draw: [drawn] },
  }, [shares.map(rarity), ...chart.lines.map((line) => line.values.map((v) => (v > 0 ? v : null)))], place);
};

// The share that took no longer: from nothing to all, time on a logarithmic axis.
const drawCdf = (chart, place, width) => {
  const [x, y] = axes(chart, false);
  Object.assign(x, { filter: oneTwoFive("x"), grid: { ...x.grid, filter: oneTwoFive("x") } });
  const { x: times } = chart.lines[0];
  return new uPlot({
    width,
    height: HEIGHT + 14,
    padding: [12, 20, 0, 0],
    cursor: { focus: { prox: 24 }, drag: { x: false, y: false }, points: { size: 7 } },
    focus: { alpha: 0.35 },
    scales: { x: { time: false, distr: 3, range: [times[0], times[times.length - 1]] }, y: { range: [0, 102] } },
    axes: [x, y],
    series: [
      { label: "\u00a0", value: (u, value) => (shown(u, value) === "" ? "" : `up to ${show(value)} ${chart.x_label}, %`) },
      ...curves(chart),
    ],
    hooks: { draw: [drawn] },
  }, [times, ...chart.lines.map((line) => line.values)], place);
};
