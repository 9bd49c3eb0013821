// Where several subjects are in one chart: names at the ends of lines, so that nobody needs to tell colours apart.

const LABEL_GAP = 12;
const MOST_LABELS = 14;
const isSubject = (line) => /^s\d+$/.test(line.role);
const labelled = (chart) => {
  const subjects = chart.lines.filter(isSubject);
  return onTime(chart) && !narrow() && subjects.length > 1 && subjects.length <= MOST_LABELS ? subjects : [];
};
const shortName = (name) => (name.length > 18 ? name.slice(0, 17) + "…" : name);
const labelRoom = (chart) => {
  const longest = Math.max(0, ...labelled(chart).map((line) => shortName(line.name).length));
  return longest ? 18 + 6.1 * longest : 12;
};

const endLabels = (chart) => (u) => {
  const names = labelled(chart);
  if (!names.length) return;
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio || 1;
  const [first, last] = u.series[0].idxs;
  const places = [];
  chart.lines.forEach((line, number) => {
    if (!names.includes(line)) return;
    let index = last;
    while (index >= first && (u.data[number + 1][index] ?? null) === null) index -= 1;
    if (index < first) return;
    const at = u.valToPos(u.data[number + 1][index], "y", true);
    places.push({ line, at, top: Math.min(Math.max(at, bbox.top), bbox.top + bbox.height), end: u.valToPos(u.data[0][index], "x", true) });
  });
  // None over another, and none below the chart.
  places.sort((a, b) => a.top - b.top);
  const gap = LABEL_GAP * ratio;
  places.forEach((place, n) => { if (n && place.top < places[n - 1].top + gap) place.top = places[n - 1].top + gap; });
  let floor = bbox.top + bbox.height;
  for (const place of [...places].reverse()) { place.top = Math.min(place.top, floor); floor = place.top - gap; }
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  const left = bbox.left + bbox.width;
  for (const { line, at, top, end } of places) {
    ctx.strokeStyle = ctx.fillStyle = colour(line.role);
    ctx.globalAlpha = 0.6;
    ctx.lineWidth = ratio;
    ctx.beginPath();
    ctx.moveTo(Math.min(end, left), Math.min(Math.max(at, bbox.top), bbox.top + bbox.height));
    ctx.lineTo(left + 8 * ratio, top);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.fillText(shortName(line.name), left + 11 * ratio, top);
  }
  ctx.restore();
};

// Small charts are read side by side: those of one time axis have one scale.
const isSmall = (chart) => /^phase\d+-/.test(chart.id);
const heightOf = (chart) => (isSmall(chart) ? 170 : HEIGHT);
const sharedRange = (chart) => {
  if (!isSmall(chart)) return undefined;
  let [low, high] = [Infinity, 0];
  for (const other of data.charts) {
    if (!isSmall(other) || other.axis !== chart.axis) continue;
    for (const line of other.lines) for (const value of line.values) {
      if (value === null || value <= 0) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return high > 0 ? [low * 0.9, high * 1.1] : undefined;
};
