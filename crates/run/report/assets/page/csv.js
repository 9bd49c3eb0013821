// Numbers to take along: every chart and every table as CSV.

// Text is quoted where needed, and cannot pass for a formula.
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
const overX = (chart, first) => {
  const columns = chart.lines.flatMap((line) => {
    const own = [`${line.name} (${chart.unit})`, line.values];
    return line.low ? [own, [`${line.name}, low`, line.low], [`${line.name}, high`, line.high]] : [own];
  });
  return [[first, ...columns.map(([head]) => head)], ...chart.lines[0].x.map((x, index) => [x, ...columns.map(([, values]) => values[index])])];
};
const heatRows = (chart) => {
  const { cells } = heatOf(chart);
  const edges = chart.heat.y_edges;
  const rows = edges.slice(1).map((edge, row) => [`${edges[row]} to ${edge} ${chart.unit}`, row]);
  return [rows.map(([head]) => head), (step) => rows.map(([, row]) => cells[step]?.[row] ?? 0)];
};
const chartRows = (chart) => {
  if (chart.kind === "distribution") return overX(chart, "share");
  if (chart.kind === "cdf" || chart.kind === "lines") return overX(chart, chart.x_label);
  if (chart.kind === "bars") return [["class", ...chart.lines.map((line) => line.name)], ...chart.lines[0].x_names.map((name, index) => [name, ...chart.lines.map((line) => line.values[index])])];
  const axis = axisOf(chart);
  const stamps = (time) => [time, phaseAt(time, axis)?.name ?? ""];
  if (chart.kind === "heat") {
    const [heads, row] = heatRows(chart);
    return [["time_s", "phase", ...heads], ...axis.time.map((time, step) => [...stamps(time), ...row(step)])];
  }
  const of = (line) => (chart.lines.length > 1 ? `${line.name}: ` : "");
  // Over time a line is a column, and its lowest and highest run are two more; against a rate it has one of its own.
  const columns = chart.lines.flatMap((line) => {
    if (chart.x_label) return [[of(line) + chart.x_label, line.x], [of(line) + chart.unit, line.values]];
    const mean = [`${line.name} (${chart.unit})`, line.values];
    return line.low ? [mean, [`${line.name}, lowest run`, line.low], [`${line.name}, highest run`, line.high]] : [mean];
  });
  const heads = ["time_s", "phase", ...columns.map(([head]) => head)];
  return [heads, ...axis.time.map((time, index) => [...stamps(time), ...columns.map(([, values]) => values[index])])];
};
const tableRows = (figure) => {
  const groups = [...figure.querySelectorAll(".groups th")].flatMap((th) => Array(th.colSpan).fill(th.textContent));
  const cells = (row) => [...row.children].map((cell) => cell.textContent);
  const [first, ...heads] = cells(figure.querySelector("thead tr:last-child"));
  const plain = (text) => (text === "–" ? "" : text.replace(/(\d),(?=\d{3})/g, "$1"));
  const rows = [...figure.querySelectorAll("tbody tr")].map((row) => { const [name, ...rest] = cells(row); return [name, ...rest.map(plain)]; });
  return [[first, ...heads.map((head, index) => (groups[index] ? `${groups[index]}: ${head}` : head))], ...rows];
};
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.csv");
  if (!button) return;
  const { chart, table } = button.dataset;
  const rows = chart ? chartRows(byId.get(chart)) : tableRows(document.getElementById(table));
  save(`assay-${chart || table}.csv`, rows);
  button.dataset.saved = String(rows.length);
});

// A command to be pasted elsewhere.
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Where a page may not write to the clipboard, the text is at least marked.
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});
