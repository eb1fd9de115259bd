"use strict";

// The page is whole without this script. It adds: a switch of the theme, details of what is pointed at, and zoom for the timeline.

(function themeSwitch() {
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();

const tip = {
  box: document.getElementById("tip"),
  show(text, event) {
    this.box.textContent = text;
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const below = event.clientY + 18 + height < innerHeight;
    this.box.style.left = Math.max(8, left) + "px";
    this.box.style.top = (below ? event.clientY + 18 : event.clientY - height - 12) + "px";
  },
  hide() { this.box.hidden = true; },
};

// Titles of bars and points show at once instead of after the browser's delay.
for (const title of document.querySelectorAll("svg.bar title, .chart rect > title, .chart g > title")) {
  const element = title.parentElement;
  const text = title.textContent;
  element.setAttribute("aria-label", text);
  title.remove();
  element.addEventListener("pointermove", (event) => tip.show(text, event));
  element.addEventListener("pointerleave", () => tip.hide());
}

function duration(microseconds) {
  if (microseconds >= 1e6) return (microseconds / 1e6).toFixed(3) + " s";
  if (microseconds >= 1e3) return (microseconds / 1e3).toFixed(microseconds >= 1e5 ? 0 : 2) + " ms";
  return microseconds <= 1 ? "1 µs or less" : microseconds + " µs";
}

function summed(text) {
  if (!text) return null;
  let sum = 0;
  return text.split(" ").map((difference) => difference === "-" ? null : (sum += Number(difference)));
}

// The spans of one name in a lane, as timeline.cpp wrote them: "m gap 0h length" each.
function spansOf(path) {
  const begin = [], length = [];
  let at = 0;
  for (const [, gap, long] of path.getAttribute("d").matchAll(/m(\d+) 0h(\d+)/g)) {
    begin.push(at += Number(gap));
    length.push(Number(long));
    at += Number(long);
  }
  return { name: path.dataset.name, begin, length, batch: summed(path.dataset.batch), record: summed(path.dataset.record) };
}

// The index of the last of the sorted times that is not after `time`; -1 before the first.
function lastBefore(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function svg(name, attributes, text) {
  const element = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function timeline(figure) {
  const outer = figure.querySelector(".chart > svg");
  const inner = figure.querySelector(".spans");
  const ticks = figure.querySelector(".ticks");
  const names = figure.querySelector(".names");
  const pointed = figure.querySelector(".pointed");
  const start = Number(figure.dataset.begin), length = Number(figure.dataset.length);
  const height = Number(outer.getAttribute("height"));
  const leastLength = Math.min(length, 500);
  const lanes = [...inner.querySelectorAll("[data-lane]")].map((group) => {
    const counter = group.querySelector(".counter");
    return {
      name: group.dataset.lane, y: Number(group.dataset.y), height: Number(group.dataset.height),
      kinds: counter ? [] : [...group.querySelectorAll("path")].map(spansOf),
      times: counter && summed(counter.dataset.times), values: counter && summed(counter.dataset.values),
    };
  });
  let from = 0, shown = length, drawing = 0;

  function drawTicks() {
    const inSeconds = shown >= 1e6, unit = inSeconds ? 1e6 : 1e3;
    const least = shown / unit / Math.max(2, Math.min(8, outer.clientWidth / 95));
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= least);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    ticks.replaceChildren();
    for (let mark = Math.ceil((start + from) / unit / step) * step; mark <= (start + from + shown) / unit; mark += step) {
      const x = 100 * (mark * unit - start - from) / shown + "%";
      ticks.append(svg("line", { x1: x, x2: x, y1: 20, y2: height }),
                   svg("text", { x, y: 15, "text-anchor": "middle" }, mark.toFixed(decimals) + (inSeconds ? " s" : " ms")));
    }
  }

  // Names into bars that are wide enough.
  function drawNames() {
    names.replaceChildren();
    const pixel = shown / outer.clientWidth;
    let left = 400;
    for (const lane of lanes) for (const kind of lane.kinds) {
      const least = (kind.name.length * 6.5 + 8) * pixel;
      if (/^(wait|ahead|read)/.test(kind.name)) continue;
      for (let i = Math.max(0, lastBefore(kind.begin, from)); i < kind.begin.length && kind.begin[i] < from + shown && left > 0; ++i) {
        const begin = Math.max(kind.begin[i], from), end = Math.min(kind.begin[i] + kind.length[i], from + shown);
        if (end - begin < least) continue;
        --left;
        names.append(svg("text", { x: 100 * ((begin + end) / 2 - from) / shown + "%", y: lane.y + lane.height / 2 + 4,
                                   "text-anchor": "middle" }, kind.name));
      }
    }
  }

  function draw() {
    drawing = 0;
    inner.setAttribute("viewBox", `${from} 0 ${shown} ${height}`);
    drawTicks();
    drawNames();
  }

  function show(newFrom, newShown) {
    shown = Math.max(leastLength, Math.min(length, newShown));
    from = Math.max(0, Math.min(length - shown, newFrom));
    if (!drawing) drawing = requestAnimationFrame(draw);
  }
  // `share`: which place of the view stays where it is, 0 to 1.
  function zoom(factor, share) {
    const newShown = Math.max(leastLength, Math.min(length, factor ? shown * factor : length));
    show(from + share * (shown - newShown), newShown);
  }

  function at(event) {
    const box = outer.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: event.clientY - box.top };
  }
  function details(event) {
    const { x, y } = at(event);
    const time = from + x * shown, pixel = shown / outer.clientWidth;
    const lane = lanes.find((candidate) => y >= candidate.y && y <= candidate.y + candidate.height);
    pointed.setAttribute("width", 0);
    if (!lane || x < 0 || x > 1) return tip.hide();
    if (lane.times) return tip.show(`${lane.name}: ${lane.values[Math.max(0, lastBefore(lane.times, time))]}`, event);
    let best = null;
    for (const kind of lane.kinds)
      for (const i of [lastBefore(kind.begin, time), lastBefore(kind.begin, time) + 1]) {
        if (i < 0 || i >= kind.begin.length) continue;
        const away = Math.max(kind.begin[i] - time, time - kind.begin[i] - kind.length[i], 0);
        if (away <= 3 * pixel && (!best || away < best.away)) best = { kind, i, away };
      }
    if (!best) return tip.hide();
    const { kind, i } = best;
    pointed.setAttribute("x", kind.begin[i]);
    pointed.setAttribute("width", kind.length[i]);
    pointed.setAttribute("y", lane.y);
    pointed.setAttribute("height", lane.height);
    let text = `${kind.name}: ${duration(kind.length[i])}\n${lane.name}, at ${((start + kind.begin[i]) / 1e6).toFixed(4)} s`;
    if (kind.batch && kind.batch[i] !== null) text += `\nbatch ${kind.batch[i]}`;
    if (kind.record && kind.record[i] !== null) text += `\nrecord ${kind.record[i]}`;
    tip.show(text, event);
  }

  // One pointer moves, two zoom.
  const pointers = new Map();
  const target = figure.querySelector(".chart");
  target.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event.clientX);
    target.setPointerCapture(event.pointerId);
  });
  target.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return details(event);
    const before = [...pointers.values()];
    pointers.set(event.pointerId, event.clientX);
    const after = [...pointers.values()];
    if (after.length === 2)
      zoom(Math.max(8, Math.abs(before[0] - before[1])) / Math.max(8, Math.abs(after[0] - after[1])), at(event).x);
    else if (after[0] !== before[0])
      show(from + (before[0] - after[0]) / outer.clientWidth * shown, shown);
    tip.hide();
  });
  const release = (event) => pointers.delete(event.pointerId);
  target.addEventListener("pointerup", (event) => { release(event); details(event); });
  target.addEventListener("pointercancel", release);
  target.addEventListener("pointerleave", () => { tip.hide(); pointed.setAttribute("width", 0); });
  target.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), at(event).x);
  }, { passive: false });
  target.addEventListener("dblclick", (event) => zoom(0.4, at(event).x));
  const tools = figure.querySelector(".tools");
  tools.hidden = false;
  tools.addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.zoom) zoom(Number(dataset.zoom), 0.5);
    if (dataset.move) show(from + Number(dataset.move) * shown, shown);
  });
  new ResizeObserver(() => show(from, shown)).observe(outer);
  figure.classList.add("ready");
}

document.querySelectorAll(".timeline").forEach(timeline);
