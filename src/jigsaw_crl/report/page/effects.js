// Sizes of effects: the forest of one effect, and the marks of intervals.
const sized = raw.interval !== null;

function around(value, error) {
  const half = raw.interval * error;
  return { value, low: value - half, high: value + half };
}

const known = (pair) => !Number.isNaN(pairs.total[pair]);

// Some decimals and a sign; zero has none.
function signed(value, decimals = 2) {
  const text = Math.abs(value).toFixed(decimals);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

const range = ({ low, high }) => (low === high ? "exact" : `${signed(low)} to ${signed(high)}`);

// One effect at every site, and at all together; nothing where fewer than two sites measured it.
function forest(pair, said) {
  const sites = said.filter((s) => s.size !== null);
  if (sites.length < 2 || !known(pair)) return [];
  const all = around(pairs.total[pair], pairs.error[pair]);
  const scale = scaleOf([...sites.map((s) => s.size), all]);
  const row = (name, size, kind) => element("tr", { class: kind },
    element("th", { scope: "row", title: name }, element("bdi", {}, name)),
    element("td", { class: "plot" }, mark(scale, size, kind)),
    // The certificate has the number of all together.
    kind === "sum" ? element("td") : element("td", { class: "num" }, `${kind === "aside" ? "× " : ""}${signed(size.value)}`, element("span", { class: "sr" }, ` (${range(size)})${kind === "aside" ? ", set aside" : ""}`)));
  return [element("table", { id: "forest", class: "forest" },
    element("caption", { class: "sr" }, "Effect at every client, and at all together"),
    element("thead", {}, element("tr", {}, ...["client", "95 % interval", "effect"].map((x) => element("th", { scope: "col" }, x)))),
    element("tbody", {}, ...sites.map((s) => row(s.name, s.size, s.size.aside ? "aside" : "site")),
      row("all clients", all, "sum"), axisRow(scale)))];
}

// -- marks: intervals in table cells, on one scale --

function shape(tag, attributes, ...children) {
  const made = document.createElementNS($("hasse").namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function scaleOf(sizes) {
  const ends = sizes.flatMap(({ low, high, value }) => [low, high, value]).filter((x) => Number.isFinite(x));
  let [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  if (high - low < 0.02) [low, high] = [low - 0.01, high + 0.01];
  const pad = 0.06 * (high - low);
  return { low, high, at: (x) => `${((100 * (x - low + pad)) / (high - low + 2 * pad)).toFixed(2)}%` };
}

const MARK_KINDS = { site: ["", "M-3.5 -3.5h7v7h-7z"], aside: ["out", "M-4 -4 4 4M-4 4 4 -4"], sum: ["pool", "M-6 0 0 -6 6 0 0 6z"],
  up: ["up", "M-3.5 -3.5h7v7h-7z"], down: ["down", "M-3.5 -3.5h7v7h-7z"], zero: ["", "M-3.5 -3.5h7v7h-7z"] };

function mark(scale, size, kind) {
  const [name, path] = MARK_KINDS[kind];
  const svg = shape("svg", { class: "mark", "aria-hidden": "true", focusable: "false" },
    shape("line", { class: "zero", x1: scale.at(0), x2: scale.at(0), y1: "0", y2: "28" }));
  if (!size || !Number.isFinite(size.value)) return svg;
  svg.append(
    shape("line", { class: `span ${name}`, x1: scale.at(size.low), x2: scale.at(size.high), y1: "14", y2: "14" }),
    shape("svg", { x: scale.at(size.value), y: "14", overflow: "visible" }, shape("path", { class: `dot ${name}`, d: path })));
  return svg;
}

function axisRow(scale) {
  const axis = shape("svg", { class: "mark", "aria-hidden": "true", focusable: "false" });
  // Nearer to zero, numbers would touch where the plot is narrow.
  const ticks = [scale.low, 0, scale.high].filter((x, k) => k === 1 || Math.abs(x) > 0.4 * (scale.high - scale.low));
  ticks.forEach((x) => axis.append(shape("text", { x: scale.at(x), y: "14" }, signed(x))));
  return element("tr", { class: "axis" }, element("td"), element("td", { class: "plot" }, axis), element("td"));
}
