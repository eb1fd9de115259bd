"use strict";

// Draws the chart "timeline": a row per lane with a bar for each span, and a curve for each
// counter. CMake puts it before page.js.

const laneHeight = 16, counterHeight = 34, laneGap = 4, groupHeight = 26, ticksHeight = 24;

function duration(microseconds) {
  if (microseconds >= 1e6) return (microseconds / 1e6).toFixed(3) + " s";
  if (microseconds >= 1e3) return (microseconds / 1e3).toFixed(microseconds >= 1e5 ? 0 : 2) + " ms";
  return microseconds <= 1 ? "1 µs or less" : microseconds + " µs";
}
// Decodes numbers from differences; null = no number.
function summed(differences) {
  let sum = 0;
  return differences &&
      differences.map((difference) => difference === null ? null : (sum += difference));
}
// Index of the last of the sorted times that is not after `time`; -1 if all are after it.
function lastBefore(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

// One path for all spans of a name in a lane.
function spansPath(kind, middle) {
  const [style, thickness] = spanStyle(kind.name);
  let path = `M0 ${middle}`;
  kind.begin = [];
  kind.length = [];
  for (let i = 0, at = 0; i < kind.spans.length; i += 2) {
    const [gap, length] = [kind.spans[i], kind.spans[i + 1]];
    path += `m${gap} 0h${length}`;
    kind.begin.push(at + gap);
    kind.length.push(length);
    at += gap + length;
  }
  kind.batch = summed(kind.batch);
  kind.record = summed(kind.record);
  return svg("path", {class: style, "stroke-width": laneHeight * thickness, d: path});
}
function counterPath(lane, end) {
  lane.times = summed(lane.times);
  lane.values = summed(lane.values);
  lane.most = Math.max(1, ...lane.values);
  const bottom = lane.y + lane.height;
  const height = (value) => bottom - (lane.height - 2) * Math.max(0, value) / lane.most;
  const path =
      lane.times.map((time, i) => `H${time}V${height(lane.values[i]).toFixed(1)}`).join("");
  return svg("path", {class: "counter", d: `M0 ${bottom}${path}H${end}V${bottom}`});
}

function timeline(place, {begin: start, length, groups}) {
  const around = svg("g", {}), ticks = svg("g", {class: "ticks"}),
        names = svg("g", {class: "names"});
  const inner = svg("svg", {class: "spans", width: "100%", preserveAspectRatio: "none"});
  const pointed = svg("rect", {class: "pointed", width: 0, height: 0});
  const lanes = [], known = new Set();
  let y = ticksHeight;
  for (const group of groups) {
    around.append(svg("text", {class: "group", x: -104, y: y + groupHeight - 8}, group.name));
    y += groupHeight;
    for (const lane of group.lanes) {
      lane.y = y;
      lane.height = lane.times ? counterHeight : laneHeight;
      around.append(
          svg("rect", {class: "lane", y, width: "100%", height: lane.height}),
          svg("text", {x: -8, y: y + lane.height / 2, dy: 4, "text-anchor": "end"}, lane.name));
      if (lane.times) {
        inner.append(counterPath(lane, length));
        around.append(svg("text", {x: "100%", dx: 4, y: y + 9}, lane.most));
      } else {
        inner.append(...lane.kinds.map((kind) => spansPath(kind, y + laneHeight / 2)));
        lane.kinds.forEach(({name}) => known.add(name));
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
    const element = html("button", {type: "button", "aria-label": label}, text);
    Object.assign(element.dataset, data);
    return element;
  };
  const tools = html(
      "div", {class: "tools"}, button("+", "Zoom in", {zoom: 0.5}),
      button("−", "Zoom out", {zoom: 2}), button("←", "Earlier", {move: -0.5}),
      button("→", "Later", {move: 0.5}), button("All", "Show all", {zoom: 0}),
      html("span", {}, "Drag to move, Ctrl + wheel to zoom, point at a bar for its details."));
  const swatch = (name) => svg("svg", {width: 22, height: laneHeight}, svg("path", {
                                 class: spanStyle(name)[0],
                                 "stroke-width": laneHeight * spanStyle(name)[1],
                                 d: `M0 ${laneHeight / 2}h22`
                               }));
  const target = chartBox(height, "Timeline", around, ticks, inner, names);
  const outer = target.firstChild;
  place.append(
      tools,
      legend([...known].sort((a, b) => rank(a) - rank(b)).map((name) => [swatch(name), name])),
      target);

  const leastLength = Math.min(length, 500);
  let from = 0, shown = length, drawing = 0;

  function drawTicks() {
    const [unit, name] = shown >= 1e6 ? [1e6, " s"] : [1e3, " ms"];
    ticks.replaceChildren();
    for (const {value, text} of roundMarks(
             (start + from) / unit, (start + from + shown) / unit,
             Math.max(2, Math.min(8, outer.clientWidth / 95)))) {
      const x = percent((value * unit - start - from) / shown);
      ticks.append(
          svg("line", {x1: x, x2: x, y1: 20, y2: height}),
          svg("text", {x, y: 15, "text-anchor": "middle"}, text + name));
    }
  }

  // Writes names into bars that are wide enough.
  function drawNames() {
    names.replaceChildren();
    const pixel = shown / outer.clientWidth;
    let left = 400;
    for (const lane of lanes)
      for (const kind of lane.kinds || []) {
        const least = (kind.name.length * 6.5 + 8) * pixel;
        if (/^(wait|ahead|read)/.test(kind.name)) continue;
        for (let i = Math.max(0, lastBefore(kind.begin, from));
             i < kind.begin.length && kind.begin[i] < from + shown && left > 0; ++i) {
          const begin = Math.max(kind.begin[i], from),
                end = Math.min(kind.begin[i] + kind.length[i], from + shown);
          if (end - begin < least) continue;
          --left;
          names.append(
              svg("text", {
                class: "on-" + spanStyle(kind.name)[0],
                x: percent(((begin + end) / 2 - from) / shown),
                y: lane.y + lane.height / 2 + 4,
                "text-anchor": "middle"
              },
                  kind.name));
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
  // `share`: the fixed point of the view, 0 to 1.
  function zoom(factor, share) {
    const newShown = Math.max(leastLength, Math.min(length, factor ? shown * factor : length));
    show(from + share * (shown - newShown), newShown);
  }

  function at(event) {
    const box = outer.getBoundingClientRect();
    return {x: (event.clientX - box.left) / box.width, y: event.clientY - box.top};
  }
  function details(event) {
    const {x, y} = at(event);
    const time = from + x * shown, pixel = shown / outer.clientWidth;
    const lane = lanes.find((candidate) => y >= candidate.y && y <= candidate.y + candidate.height);
    pointed.setAttribute("width", 0);
    if (!lane || x < 0 || x > 1) return tip.hide();
    if (lane.times)
      return tip.show(
          `${lane.name}: ${lane.values[Math.max(0, lastBefore(lane.times, time))]}`, event);
    let best = null;
    for (const kind of lane.kinds)
      for (const i of [lastBefore(kind.begin, time), lastBefore(kind.begin, time) + 1]) {
        if (i < 0 || i >= kind.begin.length) continue;
        const away = Math.max(kind.begin[i] - time, time - kind.begin[i] - kind.length[i], 0);
        if (away <= 3 * pixel && (!best || away < best.away)) best = {kind, i, away};
      }
    if (!best) return tip.hide();
    const {kind, i} = best;
    fill(pointed, {x: kind.begin[i], width: kind.length[i], y: lane.y, height: lane.height}, []);
    let text = `${kind.name}: ${duration(kind.length[i])}\n${lane.name}, at ${
        ((start + kind.begin[i]) / 1e6).toFixed(4)} s`;
    if (kind.batch && kind.batch[i] !== null) text += `\nbatch ${kind.batch[i]}`;
    if (kind.record && kind.record[i] !== null) text += `\nrecord ${kind.record[i]}`;
    tip.show(text, event);
  }

  // One pointer pans, two zoom.
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
      zoom(
          Math.max(8, Math.abs(before[0] - before[1])) / Math.max(8, Math.abs(after[0] - after[1])),
          at(event).x);
    else if (after[0] !== before[0])
      show(from + (before[0] - after[0]) / outer.clientWidth * shown, shown);
    tip.hide();
  });
  const release = (event) => pointers.delete(event.pointerId);
  target.addEventListener("pointerup", (event) => {
    release(event);
    details(event);
  });
  target.addEventListener("pointercancel", release);
  target.addEventListener("pointerleave", () => {
    tip.hide();
    pointed.setAttribute("width", 0);
  });
  target.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), at(event).x);
  }, {passive: false});
  target.addEventListener("dblclick", (event) => zoom(0.4, at(event).x));
  tools.addEventListener("click", ({target: {dataset}}) => {
    if (dataset.zoom) zoom(Number(dataset.zoom), 0.5);
    if (dataset.move) show(from + Number(dataset.move) * shown, shown);
  });
  new ResizeObserver(() => show(from, shown)).observe(outer);
}
