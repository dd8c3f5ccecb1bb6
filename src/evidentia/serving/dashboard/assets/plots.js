// Draws the points that a figure carries; the page works without it, since the figures stand beside a table of the same.
(() => {
  "use strict";
  const drawn = new Map();
  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const draw = (figure) => {
    const points = JSON.parse(figure.dataset.plot);
    drawn.get(figure)?.destroy();
    drawn.delete(figure);
    if (points.length < 2) { figure.hidden = true; return; }
    figure.hidden = false;
    const axis = { stroke: tone("--quiet"), grid: { stroke: tone("--edge"), width: 1 }, ticks: { stroke: tone("--edge"), width: 1 } };
    const unit = figure.dataset.unit || "";
    drawn.set(figure, new uPlot({
      width: figure.clientWidth, height: 150, legend: { show: false }, cursor: { show: false }, padding: [null, 28, null, null],
      series: [{}, { stroke: tone("--c1"), width: 1.5, paths: () => null, points: { show: true, size: 5, fill: tone("--c1") } }],
      axes: [{ ...axis, space: 70, size: 30, values: (_, found) => found.map((value) => new Date(value * 1000).toISOString().slice(11, 19).replace(/:00$/, "")) }, { ...axis, size: 62, values: (_, found) => found.map((value) => `${value} ${unit}`) }],
      scales: { y: { range: (_, low, high) => [0, high || 1] } },
    }, [points.map((each) => each[0]), points.map((each) => each[1])], figure));
  };
  const all = () => document.querySelectorAll("figure[data-plot]").forEach(draw);
  document.addEventListener("DOMContentLoaded", () => {
    all();
    let waiting = 0;
    addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(all, 150); });
    document.addEventListener("evidentia:theme", all);
    document.addEventListener("htmx:after:swap", all);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  });
})();
