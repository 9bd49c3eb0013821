// Which stretch of time is looked at: one for all charts of a time axis, however it was chosen.

// Time axis to {min, max}; an axis that is seen whole has none.
const views = new Map();
const onTime = (chart) => chart.kind === "time" || chart.kind === "heat";
const whole = (axis) => ({ min: axis.time[0], max: axis.time[axis.time.length - 1] });
const viewOf = (number) => views.get(number) ?? whole(data.axes ? data.axes[number] : data);

const setView = (number, range) => {
  const axis = data.axes ? data.axes[number] : data;
  const all = whole(axis);
  let [min, max] = [Math.max(range?.min ?? all.min, all.min), Math.min(range?.max ?? all.max, all.max)];
  // Less than two steps is nothing to look at.
  if (max - min < axis.step_s * 2) {
    const middle = Math.min(Math.max((min + max) / 2, all.min + axis.step_s), all.max - axis.step_s);
    [min, max] = [Math.max(all.min, middle - axis.step_s), Math.min(all.max, middle + axis.step_s)];
  }
  const isWhole = min <= all.min && max >= all.max;
  if (isWhole) views.delete(number); else views.set(number, { min, max });
  plots.forEach((plot, id) => {
    const chart = byId.get(id);
    if (!onTime(chart) || (chart.axis ?? 0) !== number) return;
    if (plot.scales.x.min !== min || plot.scales.x.max !== max) plot.setScale("x", { min, max });
  });
  if (views.size) root.dataset.zoomed = "true"; else delete root.dataset.zoomed;
  markPhases();
};
const seeAll = () => {
  new Set([...views.keys(), 0]).forEach((number) => setView(number, null));
  say("Everything is shown again.");
};
// Somebody dragged in a chart, or clicked twice: all others follow.
const follow = (chart) => (u, key) => {
  if (key !== "x" || u.scales.x.min === null || u.scales.x.min === undefined) return;
  const { min, max } = viewOf(chart.axis ?? 0);
  if (u.scales.x.min === min && u.scales.x.max === max) return;
  setView(chart.axis ?? 0, { min: u.scales.x.min, max: u.scales.x.max });
};

// A row of phases: the way to look closer with a finger, with keys, or by ear.
const bar = document.getElementById("zoom");
const within = (phase) => ({ min: phase.start + data.step_s / 2, max: phase.end - data.step_s / 2 });
const markPhases = () => {
  if (!bar) return;
  const view = views.get(0);
  const fits = (phase) => {
    if (!phase || !view) return !phase && !view;
    const range = within(phase);
    return Math.abs(view.min - range.min) < data.step_s && Math.abs(view.max - range.max) < data.step_s;
  };
  bar.querySelectorAll("button").forEach((button) => {
    button.setAttribute("aria-pressed", String(fits(data.phases[button.dataset.phase])));
  });
};
const fillBar = () => {
  if (!bar || data.axes || data.phases.length < 2) return;
  const button = (text, place) => {
    const made = element("button", "", text);
    made.type = "button";
    made.dataset.phase = place;
    if (data.phases[place]?.disturbed) made.classList.add("disturbed");
    made.addEventListener("click", () => {
      const phase = data.phases[place];
      setView(0, phase ? within(phase) : null);
      say(phase ? `All charts show phase ${phase.name}.` : "All charts show the whole run.");
    });
    return made;
  };
  bar.replaceChildren(button("Whole run", ""), ...data.phases.map((phase, place) => button(phase.name, place)));
  bar.hidden = false;
  markPhases();
};
