"use strict";
// Draws the charts from the numbers in the page, and gives those numbers away as CSV.
(() => {
  const root = document.documentElement;
  window.addEventListener("error", (event) => { root.dataset.scriptError = String(event.message); });

  const data = JSON.parse(document.getElementById("data").textContent);
  // A run has one time axis; a comparison has one for each workload.
  const axisOf = (chart) => (data.axes ? data.axes[chart.axis] : data);
  const byId = new Map(data.charts.map((chart) => [chart.id, chart]));
  const plots = new Map();
  const HEIGHT = 240;
  const PHASES_ABOVE = 31;

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (role) => css("--c-" + role) || css("--soft");

  // Three significant digits, thousands apart.
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    if (size >= 100 || value === 0) return String(Math.round(value));
    return String(+value.toPrecision(3));
  };
  // In a legend: nothing where the cursor is nowhere.
  const shown = (u, value) => (u.cursor.idx === null || u.cursor.idx === undefined ? "" : show(value));
  // Seconds: as such in a short run, as a clock in a long one.
  const clock = (time, axis) => {
    if (axis.time.length * axis.step_s <= 180) return `${show(time)} s`;
    const two = (number) => String(number).padStart(2, "0");
    const whole = Math.round(time);
    const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
  };
  const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
  const phaseAt = (time, axis) => axis.phases.find((phase) => time >= phase.start && time < phase.end);

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

  // A band for every other phase, hatched where it is invalid, and the names above, in two rows where one would be
  // too narrow.
  const phaseBands = (axis, names) => (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio || 1;
    const rowEnds = [-Infinity, -Infinity];
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    axis.phases.forEach((phase, index) => {
      const left = Math.max(u.valToPos(phase.start, "x", true), bbox.left);
      const right = Math.min(u.valToPos(phase.end, "x", true), bbox.left + bbox.width);
      if (right <= left) return;
      if (phase.invalid || index % 2 === 0) {
        ctx.fillStyle = phase.invalid ? hatching(ctx, css("--hatch"), css("--hatched")) : names.band;
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
      ctx.fillStyle = names.line;
      ctx.fillRect(Math.round(left), bbox.top - 3 * ratio, ratio, bbox.height + 3 * ratio);
      const short = phase.name.length > 20 ? phase.name.slice(0, 19) + "…" : phase.name;
      const half = ctx.measureText(short).width / 2;
      const edge = bbox.left + bbox.width + 10 * ratio;
      const middle = Math.min(Math.max((left + right) / 2, bbox.left + half), edge - half);
      const row = rowEnds.findIndex((end) => middle - half > end);
      if (row < 0) return;
      rowEnds[row] = middle + half + 5 * ratio;
      ctx.fillStyle = phase.invalid ? css("--bad") : names.text;
      ctx.fillText(short, middle, bbox.top - (10 + 13 * row) * ratio);
    });
    ctx.restore();
  };

  const axes = (chart, yLog) => {
    const shared = {
      stroke: css("--soft"),
      font: "11px system-ui, sans-serif",
      grid: { stroke: css("--grid"), width: 1 },
      ticks: { stroke: css("--line"), width: 1, size: 4 },
    };
    const x = { ...shared, grid: { show: chart.kind === "scatter", ...shared.grid }, size: 34 };
    if (chart.kind === "time") Object.assign(x, { incrs: SECONDS, values: (_, ticks) => ticks.map((tick) => clock(tick, axisOf(chart))) });
    if (chart.x_label) Object.assign(x, { label: chart.x_label, labelSize: 18, labelFont: shared.font, size: 30, values: (_, ticks) => ticks.map(show) });
    // As wide as its longest label.
    const room = (_, labels) => Math.max(52, 14 + 6.6 * Math.max(0, ...(labels ?? []).map((label) => label.length)));
    const y = { ...shared, size: room, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : show(tick))) };
    if (yLog) y.filter = (u, splits) => oneTwoFive(u, splits);
    return [x, y];
  };

  // On a logarithmic axis: labels at 1, 2 and 5 of each decade, only at 1 when there are many decades.
  const oneTwoFive = (u, splits) => {
    const many = Math.log10(u.scales.y.max / u.scales.y.min) > 2.5;
    return splits.map((split) => {
      const lead = Math.round(split / 10 ** Math.floor(Math.log10(split) + 1e-9));
      return lead === 1 || (!many && (lead === 2 || lead === 5)) ? split : null;
    });
  };

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

  const linearRange = (_, min, max) => (max === null || max <= 0 ? [0, 1] : [0, max * 1.08]);
  const positive = (values) => values.some((value) => value !== null && value > 0);
  const hasNumbers = (chart) => chart.lines.some((line) => line.values.some((value) => value !== null));

  const timeOptions = (chart, width) => {
    const log = chart.log && chart.lines.some((line) => positive(line.values));
    const axis = axisOf(chart);
    const few = axis.time.length <= 90;
    const highest = Math.max(0, ...chart.lines.flatMap((line) => line.high ?? []));
    const range = (u, min, max) => linearRange(u, min, max === null ? max : Math.max(max, highest));
    return {
      width,
      height: HEIGHT,
      padding: [PHASES_ABOVE, 12, 0, 0],
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
          dash: line.dashed ? [5, 4] : undefined,
          spanGaps: false,
          paths: line.points ? () => null : undefined,
          points: line.points
            ? { show: true, size: 9, width: 0, fill: colour(line.role) }
            : { show: few && line.values.filter((value) => value !== null).length < 4 },
          value: shown,
        })),
      ],
      hooks: {
        drawClear: [phaseBands(axis, { band: css("--band"), line: css("--line"), text: css("--soft") }), runBands(chart, axis.time)],
        draw: [(u) => { u.root.closest("figure").dataset.drawn = "true"; }],
      },
    };
  };
  const phaseName = (time, axis) => { const phase = phaseAt(time, axis); return phase ? `, ${phase.name}${phase.invalid ? " (invalid)" : ""}` : ""; };

  const drawTime = (chart, place, width) => {
    const log = chart.log && chart.lines.some((line) => positive(line.values));
    // A logarithmic axis has no zero.
    const values = chart.lines.map((line) => (log ? line.values.map((v) => (v !== null && v > 0 ? v : null)) : line.values));
    return new uPlot(timeOptions(chart, width), [axisOf(chart).time, ...values], place);
  };

  const drawScatter = (chart, place, width) => {
    const points = chart.lines.flatMap((line, number) => line.x.map((x, index) => [x, line.values[index], number]));
    const known = points.filter(([x, y]) => x !== null && y !== null).sort((a, b) => a[0] - b[0]);
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
      scales: { x: { time: false, range: linearRange }, y: { range: linearRange } },
      axes: axes(chart, false),
      series: [{ label: chart.x_label, value: shown }, ...series],
      hooks: { draw: [(u) => { u.root.closest("figure").dataset.drawn = "true"; }] },
    }, [known.map((point) => point[0]), ...values], place);
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
      height: HEIGHT,
      padding: [12, 30, 0, 0],
      cursor: { focus: { prox: 24 }, drag: { x: false, y: false }, points: { size: 7 } },
      focus: { alpha: 0.35 },
      scales: { x: { time: false, range: [0, last] }, y: { distr: 3 } },
      axes: [x, y],
      series: [
        { label: "\u00a0", value: (u, value) => (shown(u, value) === "" ? "" : `${label(1 - 10 ** -value)} take no longer than`) },
        ...chart.lines.map((line) => ({
          label: line.name, stroke: colour(line.role), width: 1.75, points: { show: false }, value: shown,
        })),
      ],
      hooks: { draw: [(u) => { u.root.closest("figure").dataset.drawn = "true"; }] },
    }, [shares.map(rarity), ...chart.lines.map((line) => line.values.map((v) => (v > 0 ? v : null)))], place);
  };

  const draw = { time: drawTime, scatter: drawScatter, distribution: drawDistribution };
  const drawAll = () => {
    plots.forEach((plot) => plot.destroy());
    plots.clear();
    document.querySelectorAll("figure.chart").forEach((figure) => {
      const chart = byId.get(figure.dataset.chart);
      const place = figure.querySelector(".plot");
      place.textContent = "";
      if (!hasNumbers(chart)) {
        const words = document.createElement("p");
        words.className = "empty";
        words.textContent = "Nothing was measured here.";
        place.append(words);
        figure.dataset.drawn = "empty";
        return;
      }
      const width = Math.max(place.clientWidth, 240);
      plots.set(chart.id, draw[chart.kind](chart, place, width));
    });
    root.dataset.charts = String(data.charts.length);
  };

  // Sizes and colours follow the window, the system and the button.
  let widthThen = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === widthThen) return;
    widthThen = innerWidth;
    plots.forEach((plot, id) => {
      const place = document.querySelector(`#chart-${id} .plot`);
      plot.setSize({ width: Math.max(place.clientWidth, 240), height: plot.height });
    });
  });
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const themeButton = document.getElementById("theme");
  const restyle = () => {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
    drawAll();
  };
  themeButton.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; restyle(); });
  system.addEventListener("change", restyle);
  let themeBeforePrint;
  addEventListener("beforeprint", () => { themeBeforePrint = root.dataset.theme; root.dataset.theme = "light"; restyle(); });
  addEventListener("afterprint", () => {
    if (themeBeforePrint) root.dataset.theme = themeBeforePrint; else delete root.dataset.theme;
    restyle();
  });

  // Keys: arrows move the cursor of the focused chart (and of all), Escape shows everything again.
  document.querySelectorAll("figure.chart").forEach((figure) => {
    figure.querySelector(".plot").addEventListener("keydown", (event) => {
      const plot = plots.get(figure.dataset.chart);
      if (!plot) return;
      if (event.key === "Escape") { plots.forEach((each) => each.setData(each.data)); return; }
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (!step) return;
      event.preventDefault();
      const last = plot.data[0].length - 1;
      const index = Math.min(last, Math.max(0, (plot.cursor.idx ?? -1) + step));
      const left = plot.valToPos(plot.data[0][index], "x");
      plot.setCursor({ left, top: plot.over.clientHeight / 2 }, true, true);
    });
  });

  // CSV. Text is quoted where needed, and cannot pass for a formula.
  const field = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) && isNaN(value) ? "'" + value : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const save = (name, rows) => {
    const text = rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    return text;
  };
  const chartRows = (chart) => {
    if (chart.kind === "distribution") {
      const heads = ["share", ...chart.lines.map((line) => `${line.name} (${chart.unit})`)];
      return [heads, ...chart.lines[0].x.map((share, index) => [share, ...chart.lines.map((line) => line.values[index])])];
    }
    const of = (line) => (chart.lines.length > 1 ? `${line.name}: ` : "");
    // Over time a line is a column, and its lowest and highest run are two more; against a rate it has one of its own.
    const columns = chart.lines.flatMap((line) => {
      if (chart.x_label) return [[of(line) + chart.x_label, line.x], [of(line) + chart.unit, line.values]];
      const mean = [`${line.name} (${chart.unit})`, line.values];
      return line.low ? [mean, [`${line.name}, lowest run`, line.low], [`${line.name}, highest run`, line.high]] : [mean];
    });
    const heads = ["time_s", "phase", ...columns.map(([head]) => head)];
    const axis = axisOf(chart);
    const rows = axis.time.map((time, index) => [time, phaseAt(time, axis)?.name ?? "", ...columns.map(([, values]) => values[index])]);
    return [heads, ...rows];
  };
  const tableRows = (figure) => {
    const groups = [...figure.querySelectorAll(".groups th")].flatMap((th) => Array(th.colSpan).fill(th.textContent));
    const cells = (row) => [...row.children].map((cell) => cell.textContent);
    const [first, ...heads] = cells(figure.querySelector("thead tr:last-child"));
    const plain = (text) => (text === "–" ? "" : text.replace(/(\d),(?=\d{3})/g, "$1"));
    const rows = [...figure.querySelectorAll("tbody tr")].map((row) => { const [name, ...rest] = cells(row); return [name, ...rest.map(plain)]; });
    return [[first, ...heads.map((head, index) => (groups[index] ? `${groups[index]}: ${head}` : head))], ...rows];
  };
  document.querySelectorAll("button.csv").forEach((button) => {
    button.addEventListener("click", () => {
      const { chart, table } = button.dataset;
      const rows = chart ? chartRows(byId.get(chart)) : tableRows(document.getElementById(table));
      save(`assay-${chart || table}.csv`, rows);
      button.dataset.saved = String(rows.length);
    });
  });

  restyle();
})();
