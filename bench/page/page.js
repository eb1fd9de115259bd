"use strict";

// Draws the charts of a page from the data that stands in their places, and adds a switch of the theme. Verdict and tables need no script.

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

function fill(element, attributes, children) {
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.append(...children);
  return element;
}
function html(name, attributes, ...children) { return fill(document.createElement(name), attributes, children); }
function svg(name, attributes, ...children) {
  return fill(document.createElementNS(document.querySelector("svg").namespaceURI, name), attributes, children);
}
// An element that says `text` when it is pointed at.
function saying(element, text) {
  element.setAttribute("aria-label", text);
  element.addEventListener("pointermove", (event) => tip.show(text, event));
  element.addEventListener("pointerleave", () => tip.hide());
  return element;
}
function percent(share) { return (100 * share).toFixed(3) + "%"; }
function legend(items) {
  return html("ul", { class: "legend" }, ...items.map(([picture, text]) => html("li", {}, picture, text)));
}
// An SVG is as large as the plot itself, and texts hang over its edges into a margin: so x can be told in percent, and a chart fits any width
// without its texts being scaled.
function chartBox(height, title, ...children) {
  return html("div", { class: "chart" }, svg("svg", { width: "100%", height, role: "img", "aria-label": title }, ...children));
}

// How spans of a name are drawn: the class of their colour, and how much of the lane's height they take, which tells them apart without colour.
const spanStyles = {
  read: ["kind-read", 0.4], decode: ["kind-decode", 1], augment: ["kind-augment", 0.7], plan: ["kind-plan", 0.7], upload: ["kind-copy", 0.7],
  copy: ["kind-copy", 1], convert: ["kind-copy", 0.4], step: ["kind-step", 1], trainer: ["kind-step", 1], device: ["kind-step", 1],
  stall: ["kind-stall", 1], ahead: ["kind-ahead", 0.4],
};
// Stages of other transforms get one of these, always the same for a name.
const otherStyles = [["kind-other", 0.85], ["kind-other-2", 0.55], ["kind-other-3", 0.3]];
function spanStyle(name) {
  if (name.startsWith("wait")) return ["kind-wait", 0.2];
  if (Object.hasOwn(spanStyles, name)) return spanStyles[name];
  let sum = 0;
  for (const letter of name) sum = (31 * sum + letter.codePointAt(0)) % 65536;
  return otherStyles[sum % otherStyles.length];
}

// ---- bars ----

function bars(place, { rows }) {
  const track = (width, height) => svg("rect", { class: "track", width, height });
  const swatch = (style) => svg("svg", { class: "bar", width: 26, height: 14 }, svg("rect", { class: style, width: 26, height: 14 }));
  const bar = ({ name, note, busy, waits_input: input, waits_output: output }) => {
    const starves = name === "trainer" || name === "device";
    const parts = [["busy", spanStyle(name)[0], busy], ["waits for input", starves ? "starves" : "waits-input", input],
                   ["waits for output", "waits-output", output]];
    const shown = parts.filter(([what, , share]) => what === "busy" || share >= 0.0005)
      .map(([what, , share]) => `${what} ${(100 * share).toFixed(1)}%`);
    const picture = svg("svg", { class: "bar", width: "100%", height: 22, role: "img", "aria-label": `${name}: ${shown.join(", ")}` },
                        track("100%", 22));
    let from = 0;
    for (const [what, style, share] of parts) {
      const width = Math.max(0, Math.min(share, 1 - from));
      if (width > 0)
        picture.append(saying(svg("rect", { class: style, x: percent(from), width: percent(width), height: 22 }),
                              `${name}: ${what} ${(100 * share).toFixed(1)}%`));
      from += width;
    }
    return html("div", {}, html("p", {}, html("strong", {}, name), ...[note, ...shown].filter(Boolean).map((text) => html("span", {}, text))),
                picture);
  };
  place.append(legend([[swatch("kind-step"), "busy (plain, in the stage's colour)"], [swatch("waits-input"), "waits for input (stripes)"],
                       [swatch("starves"), "the same of the trainer and the device: what the run loses"],
                       [swatch("waits-output"), "waits for room for its output (dots)"],
                       [swatch("track"), "at something else: a worker runs the other stages too"]]),
               ...rows.map(bar));
}

// ---- charts of x over y ----

const plotHeight = 240;

// Marks within a range: 1, 2 or 5 times a power of ten apart, or at least 1 apart if they are whole.
function roundMarks(low, high, most, whole) {
  if (!(high > low)) return [{ value: low, text: String(low) }];
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(whole ? 1 : 0, [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= least * (1 - 1e-9)));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const marks = [];
  for (let mark = Math.ceil(low / step - 1e-9); mark * step <= high + 1e-9 * step; ++mark)
    marks.push({ value: mark * step, text: (mark * step).toFixed(decimals) });
  return marks;
}
function linearAxis(title, low, high, most, whole) {
  if (!(high > low)) high = low + 1;
  return { title, low, high, marks: roundMarks(low, high, most, whole), at: (value) => (value - low) / (high - low) };
}
// Whole decades around a range of milliseconds, at least two of them.
function decadesAxis(title, low, high) {
  const first = Math.floor(Math.log10(low) + 1e-9), last = Math.max(Math.ceil(Math.log10(high) - 1e-9), first + 2);
  const marks = [];
  for (let power = first; power <= last; ++power) {
    const text = power < 0 ? 10 ** (power + 3) + " µs" : power > 2 ? 10 ** (power - 3) + " s" : 10 ** power + " ms";
    marks.push({ value: 10 ** power, text });
  }
  return { title, marks, at: (value) => (Math.log10(value) - first) / (last - first) };
}

function plot(place, title, x, y) {
  const height = plotHeight;
  const under = svg("g", {}), marks = svg("g", {}), labels = svg("g", {});
  const yAt = (value) => height * (1 - y.at(value));
  for (const { value, text } of y.marks)
    under.append(svg("line", { class: "rule", x1: 0, x2: "100%", y1: yAt(value), y2: yAt(value) }),
                 svg("text", { x: -8, y: yAt(value), dy: 4, "text-anchor": "end" }, text));
  for (const { value, text } of x.marks)
    under.append(svg("line", { class: "tick", x1: percent(x.at(value)), x2: percent(x.at(value)), y1: height, y2: height + 5 }),
                 svg("text", { x: percent(x.at(value)), y: height + 18, "text-anchor": "middle" }, text));
  under.append(svg("line", { class: "axis", x1: 0, x2: "100%", y1: height, y2: height }),
               svg("text", { x: -52, y: -14 }, y.title), svg("text", { x: "100%", y: height + 38, "text-anchor": "end" }, x.title));
  place.append(chartBox(height, title, under, marks, labels));
  const label = (style, value, top, text, gap) => {
    const left = x.at(value) > 0.65;
    labels.append(svg("text", { class: style, x: percent(x.at(value)), dx: left ? -gap : gap, y: top, "text-anchor": left ? "end" : "start" }, text));
  };
  return { marks, label, xAt: (value) => percent(x.at(value)), yAt };
}

function histogram(place, { x, y, bins, marks }) {
  const most = Math.max(...bins.map(([, , count]) => count));
  const picture = plot(place, "Histogram", decadesAxis(x, bins[0][0], bins[bins.length - 1][1]), linearAxis(y, 0, 1.3 * most, 5, true));
  for (const [from, to, count, text] of bins)
    picture.marks.append(saying(svg("rect", { class: "kind-stall histogram", x: picture.xAt(from), y: picture.yAt(count),
                                              width: parseFloat(picture.xAt(to)) - parseFloat(picture.xAt(from)) + "%",
                                              height: plotHeight - picture.yAt(count) }), text));
  marks.forEach(([at, text], number) => {
    picture.marks.append(svg("line", { class: "marker", x1: picture.xAt(at), x2: picture.xAt(at), y1: 0, y2: plotHeight }));
    picture.label("marker", at, 12 + 15 * number, text, 5);
  });
}

function lines(place, { x, y, whole_x: whole, series }) {
  const scaled = series.filter(({ style }) => style === "points" || style === "needed");
  const endX = 1.06 * Math.max(1, ...scaled.flatMap(({ points }) => points.map(([at]) => at)));
  const endY = 1.1 * Math.max(...scaled.flatMap(({ points, error }) => points.map(([, value], i) => value + (error ? error[i] : 0))));
  const swatch = (style) => style === "points"
    ? svg("svg", { width: 16, height: 22 }, svg("g", { class: "point" }, svg("line", { x1: 8, x2: 8, y1: 1, y2: 21 }), svg("circle", { cx: 8, cy: 11, r: 4 })))
    : svg("svg", { width: 26, height: 10 }, svg("path", { class: style, d: "M0 5h26" }));
  const items = series.map(({ style, name }) => [swatch(style), name]);
  if (series.some(({ chosen }) => chosen !== undefined))
    items.push([svg("svg", { width: 16, height: 16 }, svg("g", { class: "point chosen" }, svg("circle", { cx: 8, cy: 8, r: 6 }))), "chosen"]);
  place.append(legend(items));
  const picture = plot(place, "Chart", linearAxis(x, 0, endX, 9, whole), linearAxis(y, 0, endY, 6));
  for (const { style, points } of series) {
    if (style === "points" || points.length === 0) continue;
    const path = points.map(([at, value], i) => `${i ? "L" : "M"}${10 * parseFloat(picture.xAt(at))} ${picture.yAt(value)}`).join("");
    picture.marks.append(svg("svg", { class: "cut", width: "100%", height: plotHeight, viewBox: `0 0 1000 ${plotHeight}`, preserveAspectRatio: "none" },
                             svg("path", { class: style, d: path })));
  }
  for (const { style, points, error, texts, chosen, label } of series) {
    if (style !== "points") continue;
    points.forEach(([at, value], i) => {
      const cx = picture.xAt(at), group = svg("g", { class: i === chosen ? "point chosen" : "point" });
      if (error && error[i] > 0) {
        const ends = [picture.yAt(value + error[i]), picture.yAt(value - error[i])];
        group.append(svg("line", { x1: cx, x2: cx, y1: ends[0], y2: ends[1] }),
                     ...ends.map((end) => svg("svg", { x: cx, y: end }, svg("line", { x1: -4, x2: 4 }))));
      }
      // The wide circle is only there to be pointed at.
      group.append(svg("circle", { cx, cy: picture.yAt(value), r: 4 }), svg("circle", { class: "target", cx, cy: picture.yAt(value), r: 12 }));
      picture.marks.append(texts ? saying(group, texts[i]) : group);
      if (i === chosen && label) picture.label("label", at, picture.yAt(value) + 22, label, 10);
    });
  }
}

// ---- timeline ----

const laneHeight = 16, counterHeight = 34, laneGap = 4, groupHeight = 26, ticksHeight = 24;

function duration(microseconds) {
  if (microseconds >= 1e6) return (microseconds / 1e6).toFixed(3) + " s";
  if (microseconds >= 1e3) return (microseconds / 1e3).toFixed(microseconds >= 1e5 ? 0 : 2) + " ms";
  return microseconds <= 1 ? "1 µs or less" : microseconds + " µs";
}
// Numbers from their differences; null stands for none.
function summed(differences) {
  let sum = 0;
  return differences && differences.map((difference) => difference === null ? null : (sum += difference));
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

// One path for the spans of one name in a lane.
function spansPath(kind, middle) {
  const [style, thickness] = spanStyle(kind.name);
  let path = `M0 ${middle}`;
  kind.begin = []; kind.length = [];
  for (let i = 0, at = 0; i < kind.spans.length; i += 2) {
    const [gap, length] = [kind.spans[i], kind.spans[i + 1]];
    path += `m${gap} 0h${length}`;
    kind.begin.push(at + gap);
    kind.length.push(length);
    at += gap + length;
  }
  kind.batch = summed(kind.batch);
  kind.record = summed(kind.record);
  return svg("path", { class: style, "stroke-width": laneHeight * thickness, d: path });
}
function counterPath(lane, end) {
  lane.times = summed(lane.times);
  lane.values = summed(lane.values);
  lane.most = Math.max(1, ...lane.values);
  const bottom = lane.y + lane.height;
  const height = (value) => bottom - (lane.height - 2) * Math.max(0, value) / lane.most;
  const path = lane.times.map((time, i) => `H${time}V${height(lane.values[i]).toFixed(1)}`).join("");
  return svg("path", { class: "counter", d: `M0 ${bottom}${path}H${end}V${bottom}` });
}

function timeline(place, { begin: start, length, groups }) {
  const around = svg("g", {}), ticks = svg("g", { class: "ticks" }), names = svg("g", { class: "names" });
  const inner = svg("svg", { class: "spans", width: "100%", preserveAspectRatio: "none" });
  const pointed = svg("rect", { class: "pointed", width: 0, height: 0 });
  const lanes = [], known = new Set();
  let y = ticksHeight;
  for (const group of groups) {
    around.append(svg("text", { class: "group", x: -104, y: y + groupHeight - 8 }, group.name));
    y += groupHeight;
    for (const lane of group.lanes) {
      lane.y = y;
      lane.height = lane.times ? counterHeight : laneHeight;
      around.append(svg("rect", { class: "lane", y, width: "100%", height: lane.height }),
                    svg("text", { x: -8, y: y + lane.height / 2, dy: 4, "text-anchor": "end" }, lane.name));
      if (lane.times) {
        inner.append(counterPath(lane, length));
        around.append(svg("text", { x: "100%", dx: 4, y: y + 9 }, lane.most));
      } else {
        inner.append(...lane.kinds.map((kind) => spansPath(kind, y + laneHeight / 2)));
        lane.kinds.forEach(({ name }) => known.add(name));
      }
      lanes.push(lane);
      y += lane.height + laneGap;
    }
  }
  const height = y;
  inner.setAttribute("height", height);
  inner.append(pointed);
  const order = Object.keys(spanStyles);
  const rank = (name) => order.includes(name) ? order.indexOf(name) : order.length;
  const button = (text, label, data) => {
    const element = html("button", { type: "button", "aria-label": label }, text);
    Object.assign(element.dataset, data);
    return element;
  };
  const tools = html("div", { class: "tools" }, button("+", "Zoom in", { zoom: 0.5 }), button("−", "Zoom out", { zoom: 2 }),
                     button("←", "Earlier", { move: -0.5 }), button("→", "Later", { move: 0.5 }), button("All", "Show all", { zoom: 0 }),
                     html("span", {}, "Drag to move, Ctrl + wheel to zoom, point at a bar for its details."));
  const swatch = (name) => svg("svg", { width: 22, height: laneHeight },
                               svg("path", { class: spanStyle(name)[0], "stroke-width": laneHeight * spanStyle(name)[1], d: `M0 ${laneHeight / 2}h22` }));
  const target = chartBox(height, "Timeline", around, ticks, inner, names);
  const outer = target.firstChild;
  place.append(tools, legend([...known].sort((a, b) => rank(a) - rank(b)).map((name) => [swatch(name), name])), target);

  const leastLength = Math.min(length, 500);
  let from = 0, shown = length, drawing = 0;

  function drawTicks() {
    const [unit, name] = shown >= 1e6 ? [1e6, " s"] : [1e3, " ms"];
    ticks.replaceChildren();
    for (const { value, text } of roundMarks((start + from) / unit, (start + from + shown) / unit, Math.max(2, Math.min(8, outer.clientWidth / 95)))) {
      const x = percent((value * unit - start - from) / shown);
      ticks.append(svg("line", { x1: x, x2: x, y1: 20, y2: height }), svg("text", { x, y: 15, "text-anchor": "middle" }, text + name));
    }
  }

  // Names into bars that are wide enough.
  function drawNames() {
    names.replaceChildren();
    const pixel = shown / outer.clientWidth;
    let left = 400;
    for (const lane of lanes) for (const kind of lane.kinds || []) {
      const least = (kind.name.length * 6.5 + 8) * pixel;
      if (/^(wait|ahead|read)/.test(kind.name)) continue;
      for (let i = Math.max(0, lastBefore(kind.begin, from)); i < kind.begin.length && kind.begin[i] < from + shown && left > 0; ++i) {
        const begin = Math.max(kind.begin[i], from), end = Math.min(kind.begin[i] + kind.length[i], from + shown);
        if (end - begin < least) continue;
        --left;
        names.append(svg("text", { x: percent(((begin + end) / 2 - from) / shown), y: lane.y + lane.height / 2 + 4, "text-anchor": "middle" }, kind.name));
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
    fill(pointed, { x: kind.begin[i], width: kind.length[i], y: lane.y, height: lane.height }, []);
    let text = `${kind.name}: ${duration(kind.length[i])}\n${lane.name}, at ${((start + kind.begin[i]) / 1e6).toFixed(4)} s`;
    if (kind.batch && kind.batch[i] !== null) text += `\nbatch ${kind.batch[i]}`;
    if (kind.record && kind.record[i] !== null) text += `\nrecord ${kind.record[i]}`;
    tip.show(text, event);
  }

  // One pointer moves, two zoom.
  const pointers = new Map();
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
  tools.addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.zoom) zoom(Number(dataset.zoom), 0.5);
    if (dataset.move) show(from + Number(dataset.move) * shown, shown);
  });
  new ResizeObserver(() => show(from, shown)).observe(outer);
}

// ---- the page ----

const charts = { bars, timeline, histogram, lines };
for (const place of document.querySelectorAll(".picture")) {
  charts[place.dataset.kind](place, JSON.parse(place.querySelector("script").textContent));
  for (const table of place.parentElement.querySelectorAll(".repeats")) table.open = false;
}

const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
