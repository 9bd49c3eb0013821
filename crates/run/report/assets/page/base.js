// What all other pieces use: the numbers in the page, how they are shown, and who is to know when something moves.

const root = document.documentElement;
window.addEventListener("error", (event) => { root.dataset.scriptError = String(event.message); });

const readData = (page) => JSON.parse(page.getElementById("data").textContent);
let data = readData(document);
let byId = new Map(data.charts.map((chart) => [chart.id, chart]));
// A run has one time axis; a comparison has one for each workload.
const axisOf = (chart) => (data.axes ? data.axes[chart.axis] : data);
// Charts that are drawn, by id.
const plots = new Map();
const narrow = () => innerWidth < 600;

// Colours of the style sheet; they change with the theme.
const colours = new Map();
const css = (name) => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue(name).trim());
  return colours.get(name);
};
const colour = (role) => css("--c-" + role) || css("--soft");

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

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
const phaseAt = (time, axis) => axis.phases.find((phase) => time >= phase.start && time < phase.end);
const phaseName = (time, axis) => {
  const phase = phaseAt(time, axis);
  return phase ? `, ${phase.name}${phase.disturbed ? " (disturbed)" : ""}` : "";
};

// What is said to those who listen instead of looking.
const speaker = element("p", "unseen");
speaker.setAttribute("aria-live", "polite");
document.body.append(speaker);
const say = (text) => { speaker.textContent = text; };
