"use strict";

// Draws the charts of a page from the data in their elements, and adds a switch for the theme.
// Verdict and tables need no script.

const tip = {
  box: document.getElementById("tip"),
  show(text, event) {
    this.box.textContent = text;
    this.box.hidden = false;
    const {width, height} = this.box.getBoundingClientRect();
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
function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}
function svg(name, attributes, ...children) {
  return fill(
      document.createElementNS(document.querySelector("svg").namespaceURI, name), attributes,
      children);
}
// An element with `text` as its tooltip.
function saying(element, text) {
  element.setAttribute("aria-label", text);
  element.addEventListener("pointermove", (event) => tip.show(text, event));
  element.addEventListener("pointerleave", () => tip.hide());
  return element;
}
function percent(share) { return (100 * share).toFixed(3) + "%"; }
function legend(items) {
  return html(
      "ul", {class: "legend"}, ...items.map(([picture, text]) => html("li", {}, picture, text)));
}
// An SVG has the size of the plot; texts overflow its edges into a margin. So x can be given in
// percent, and a chart fits any width without scaling its texts.
function chartBox(height, title, ...children) {
  return html(
      "div", {class: "chart"},
      svg("svg", {width: "100%", height, role: "img", "aria-label": title}, ...children));
}

// Style of spans by name: the class of their colour, and their share of the lane's height. The
// height tells them apart without colour.
const spanStyles = {
  read: ["kind-read", 0.4],
  decode: ["kind-decode", 1],
  augment: ["kind-augment", 0.7],
  plan: ["kind-plan", 0.7],
  upload: ["kind-upload", 0.7],
  copy: ["kind-copy", 1],
  convert: ["kind-convert", 0.4],
  step: ["kind-step", 1],
  trainer: ["kind-step", 1],
  device: ["kind-step", 1],
  stall: ["kind-stall", 1],
  ahead: ["kind-ahead", 0.4],
};
// Styles for stages of other transforms; a name always gets the same style.
const otherStyles = [["kind-other", 0.85], ["kind-other-2", 0.55], ["kind-other-3", 0.3]];
function spanStyle(name) {
  if (name.startsWith("wait")) return ["kind-wait", 0.2];
  if (Object.hasOwn(spanStyles, name)) return spanStyles[name];
  let sum = 0;
  for (const letter of name) sum = (31 * sum + letter.codePointAt(0)) % 65536;
  return otherStyles[sum % otherStyles.length];
}

// ---- bars ----

// Draws a bar of parts [name, style, share] from the share `from` on, each with a tooltip and a
// text above.
function bar({name, note, from = 0}, parts) {
  const words = parts.map(([what, , share]) => `${what} ${(100 * share).toFixed(1)}%`.trim());
  const said = words.filter((_, i) => i === 0 || parts[i][2] >= 0.0005);
  const picture = svg(
      "svg", {
        class: "bar",
        width: "100%",
        height: 22,
        role: "img",
        "aria-label": `${name}: ${said.join(", ")}`
      },
      svg("rect", {class: "track", width: "100%", height: 22}));
  parts.forEach(([, style, share], i) => {
    const width = Math.max(0, Math.min(share, 1 - from));
    if (width > 0)
      picture.append(saying(
          svg("rect", {class: style, x: percent(from), width: percent(width), height: 22}),
          `${name}: ${words[i]}`));
    from += width;
  });
  return html(
      "div", {},
      html(
          "p", {}, html("strong", {}, name),
          ...[note, ...said].filter(Boolean).map((text) => html("span", {}, text))),
      picture);
}
function bars(place, {rows}) {
  const swatch = (style) =>
      svg("svg", {class: "bar", width: 26, height: 14},
          svg("rect", {class: style, width: 26, height: 14}));
  // The run loses the time that its last part (the device, or a trainer without one) waits.
  const last = rows[rows.length - 1];
  const loss = {device: "the device is idle", trainer: "the trainer waits for data"}[last?.name];
  const items = [
    [swatch("kind-step"), "busy (plain, in the stage's colour)"],
    [swatch("waits-input"), "waits for input (stripes)"],
    [swatch("waits-output"), "waits for room for its output (dots)"],
    [swatch("track"), "at something else: a worker runs the other stages too"]
  ];
  if (loss) items.splice(2, 0, [swatch("lost"), `what the run loses: ${loss}`]);
  place.append(
      legend(items),
      ...rows.map(
          (row) => bar(row, [
            ["busy", spanStyle(row.name)[0], row.busy],
            ["waits for input", loss && row === last ? "lost" : "waits-input", row.waits_input],
            ["waits for output", "waits-output", row.waits_output]
          ])));
}
function shares(place, {rows}) {
  place.append(
      ...rows.map((row) => bar(row, [["", row.lost ? "lost" : "kind-step", row.share]])));
}

// ---- charts of x and y ----

const plotHeight = 240;

// Tick marks within a range: 1, 2 or 5 times a power of ten apart; at least 1 apart for whole
// numbers.
function roundMarks(low, high, most, whole) {
  if (!(high > low)) return [{value: low, text: String(low)}];
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(whole ? 1 : 0, [
    1, 2, 5, 10
  ].map((factor) => factor * power).find((candidate) => candidate >= least * (1 - 1e-9)));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const marks = [];
  for (let mark = Math.ceil(low / step - 1e-9); mark * step <= high + 1e-9 * step; ++mark)
    marks.push({value: mark * step, text: (mark * step).toFixed(decimals)});
  return marks;
}
function linearAxis(title, low, high, most, whole) {
  if (!(high > low)) high = low + 1;
  return {
    title,
    low,
    high,
    marks: roundMarks(low, high, most, whole),
    at: (value) => (value - low) / (high - low)
  };
}
// Whole decades around a range of milliseconds, at least two.
function decadesAxis(title, low, high) {
  const first = Math.floor(Math.log10(low) + 1e-9),
        last = Math.max(Math.ceil(Math.log10(high) - 1e-9), first + 2);
  const marks = [];
  for (let power = first; power <= last; ++power) {
    const text = power < 0 ? 10 ** (power + 3) + " µs" :
        power > 2          ? 10 ** (power - 3) + " s" :
                             10 ** power + " ms";
    marks.push({value: 10 ** power, text});
  }
  return {title, marks, at: (value) => (Math.log10(value) - first) / (last - first)};
}

function plot(place, title, x, y) {
  const height = plotHeight;
  const under = svg("g", {}), marks = svg("g", {}), labels = svg("g", {});
  const yAt = (value) => height * (1 - y.at(value));
  for (const {value, text} of y.marks)
    under.append(
        svg("line", {class: "rule", x1: 0, x2: "100%", y1: yAt(value), y2: yAt(value)}),
        svg("text", {x: -8, y: yAt(value), dy: 4, "text-anchor": "end"}, text));
  for (const {value, text} of x.marks)
    under.append(
        svg("line", {
          class: "tick",
          x1: percent(x.at(value)),
          x2: percent(x.at(value)),
          y1: height,
          y2: height + 5
        }),
        svg("text", {x: percent(x.at(value)), y: height + 18, "text-anchor": "middle"}, text));
  under.append(
      svg("line", {class: "axis", x1: 0, x2: "100%", y1: height, y2: height}),
      svg("text", {x: -52, y: -14}, y.title),
      svg("text", {x: "100%", y: height + 38, "text-anchor": "end"}, x.title));
  place.append(chartBox(height, title, under, marks, labels));
  const label = (style, value, top, text, gap, turn = 0.65) => {
    const left = x.at(value) > turn;
    labels.append(
        svg("text", {
          class: style,
          x: percent(x.at(value)),
          dx: left ? -gap : gap,
          y: top,
          "text-anchor": left ? "end" : "start"
        },
            text));
  };
  return {marks, label, xAt: (value) => percent(x.at(value)), yAt};
}

function histogram(place, {x, y, bins, marks}) {
  const most = Math.max(...bins.map(([, , , , total]) => total));
  const [unit, size] = most >= 1e3 ? ["s", 1e3] : most >= 1 ? ["ms", 1] : ["µs", 1e-3];
  place.append(legend(marks.map(
      ([, text]) =>
          [svg("svg", {width: 12, height: 16},
               svg("line", {class: "marker", x1: 6, x2: 6, y1: 0, y2: 16})),
           text])));
  const picture = plot(
      place, "Histogram", decadesAxis(x, bins[0][0], bins[bins.length - 1][1]),
      linearAxis(`${y}, ${unit}`, 0, 1.3 * most / size, 5));
  for (const [from, to, , text, total] of bins)
    picture.marks.append(saying(
        svg("rect", {
          class: "kind-stall histogram",
          x: picture.xAt(from),
          y: picture.yAt(total / size),
          width: parseFloat(picture.xAt(to)) - parseFloat(picture.xAt(from)) + "%",
          height: plotHeight - picture.yAt(total / size)
        }),
        text));
  // Each line begins at its label, which is to the right of it. So no line crosses a label.
  marks.forEach(([at, text], number) => {
    const top = 12 + 15 * number;
    picture.marks.append(svg(
        "line",
        {class: "marker", x1: picture.xAt(at), x2: picture.xAt(at), y1: top - 10, y2: plotHeight}));
    picture.label("marker", at, top, text.split(" ")[0], 5, 1);
  });
}

function lines(place, {x, y, whole_x: whole, series}) {
  const scaled = series.filter(({style}) => style === "points" || style === "needed");
  const endX = 1.06 * Math.max(1, ...scaled.flatMap(({points}) => points.map(([at]) => at)));
  const endY = 1.1 *
      Math.max(...scaled.flatMap(
          ({points, error}) => points.map(([, value], i) => value + (error ? error[i] : 0))));
  const swatch = (style) => style === "points" ?
      svg("svg", {width: 16, height: 22},
          svg("g", {class: "point"}, svg("line", {x1: 8, x2: 8, y1: 1, y2: 21}),
              svg("circle", {cx: 8, cy: 11, r: 4}))) :
      svg("svg", {width: 26, height: 10}, svg("path", {class: style, d: "M0 5h26"}));
  const items = series.map(({style, name}) => [swatch(style), name]);
  if (series.some(({chosen}) => chosen !== undefined))
    items.push([
      svg("svg", {width: 16, height: 16},
          svg("g", {class: "point chosen"}, svg("circle", {cx: 8, cy: 8, r: 6}))),
      "chosen"
    ]);
  place.append(legend(items));
  const picture = plot(place, "Chart", linearAxis(x, 0, endX, 9, whole), linearAxis(y, 0, endY, 6));
  for (const {style, points} of series) {
    if (style === "points" || points.length === 0) continue;
    const path =
        points
            .map(
                ([at, value], i) =>
                    `${i ? "L" : "M"}${10 * parseFloat(picture.xAt(at))} ${picture.yAt(value)}`)
            .join("");
    picture.marks.append(
        svg("svg", {
          class: "cut",
          width: "100%",
          height: plotHeight,
          viewBox: `0 0 1000 ${plotHeight}`,
          preserveAspectRatio: "none"
        },
            svg("path", {class: style, d: path})));
  }
  for (const {style, points, error, texts, chosen, label} of series) {
    if (style !== "points") continue;
    points.forEach(([at, value], i) => {
      const cx = picture.xAt(at),
            group = svg("g", {class: i === chosen ? "point chosen" : "point"});
      if (error && error[i] > 0) {
        const ends = [picture.yAt(value + error[i]), picture.yAt(value - error[i])];
        group.append(
            svg("line", {x1: cx, x2: cx, y1: ends[0], y2: ends[1]}),
            ...ends.map((end) => svg("svg", {x: cx, y: end}, svg("line", {x1: -4, x2: 4}))));
      }
      // The wide circle only enlarges the area for the tooltip.
      group.append(
          svg("circle", {cx, cy: picture.yAt(value), r: 4}),
          svg("circle", {class: "target", cx, cy: picture.yAt(value), r: 12}));
      picture.marks.append(texts ? saying(group, texts[i]) : group);
      if (i === chosen && label) picture.label("label", at, picture.yAt(value) + 22, label, 10);
    });
  }
}

// ---- the page ----

const charts = {
  bars,
  shares,
  timeline,
  histogram,
  lines
};
for (const place of document.querySelectorAll(".picture")) {
  charts[place.dataset.kind](place, JSON.parse(place.querySelector("script").textContent));
  for (const table of place.parentElement.querySelectorAll(".repeats")) table.open = false;
}

const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" :
                                    matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
