// Sizes of effects: the bound of a "no", the panel "effect of a on d", and the marks of intervals.
const sized = raw.effects;
const effects = { total: null, error: null, chance: null, direct: null };
const bounds = { value: null, inSd: null };
const SIZE_UNIT = "standard deviations";

const floats = (bytes, first, n) => new Float32Array(bytes.slice(4 * first, 4 * (first + n)).buffer);

async function readEffects() {
  const n = P * P;
  const limits = await unpack(raw.bounds);
  bounds.value = floats(limits, 0, n);
  bounds.inSd = limits.subarray(4 * n);
  if (!sized) return;
  const [total, direct] = await Promise.all([unpack(sized.total), unpack(sized.direct)]);
  ["total", "error", "chance"].forEach((name, k) => { effects[name] = floats(total, k * n, n); });
  effects.direct = {
    weight: floats(direct, 0, n), error: floats(direct, n, n),
    verdict: direct.subarray(8 * n, 9 * n), open: direct.subarray(9 * n),
  };
}

const siteCache = new Map();

function readSite(k, packed) {
  if (!siteCache.has(k)) siteCache.set(k, unpack(packed));
  return siteCache.get(k);
}

// What every site measured of one effect.
async function siteEffects(a, d) {
  const out = [];
  for (const [k, packed] of sized.sites) {
    const members = raw.clients[k].members;
    const [i, j] = [members.indexOf(a), members.indexOf(d)];
    if (i < 0 || j < 0) continue;
    const bytes = await readSite(k, packed);
    const n = members.length * members.length;
    const at = i * members.length + j;
    const [value, error] = [floats(bytes, at, 1)[0], floats(bytes, n + at, 1)[0]];
    if (!Number.isNaN(value)) {
      out.push({ name: raw.clients[k].name, ...around(value, error), aside: bytes[8 * n + at] === 1 });
    }
  }
  return out;
}

function around(value, error) {
  const half = sized.interval * error;
  return { value, low: value - half, high: value + half };
}

const known = (pair) => Boolean(sized) && !Number.isNaN(effects.total[pair]);

// Two decimals and a sign; zero has none.
function signed(value) {
  const text = Math.abs(value).toFixed(2);
  return text === "0.00" ? text : `${value < 0 ? "−" : "+"}${text}`;
}

const range = ({ low, high }) => (low === high ? "exact" : `${signed(low)} to ${signed(high)}`);

// How large an effect a "no" excludes, in words and rounded up; empty for other verdicts.
function boundText(pair) {
  if (pairs.verdict[pair] !== 1) return "";
  if (raw.mode === "exact") return "Exact moments exclude an effect of any size.";
  const value = bounds.value[pair];
  if (Number.isNaN(value)) return "No client measured this pair: the verdict follows from other pairs, and excludes no size of effect by itself.";
  // Two digits, as in the certificate.
  const step = 10 ** (Math.floor(Math.log10(Math.max(value, 1e-12))) - 1);
  const up = Math.ceil(value / step - 1e-4) * step;
  const digits = (number) => String(Number(number.toPrecision(2)));
  if (bounds.inSd[pair]) return `An effect above ${digits(up)} standard deviations is excluded (95 %).`;
  if (up > 0.995) return "The data exclude no size of effect: the verdict rests on how improbable the pair is.";
  return `An effect above ${digits(100 * up)} % of what the intervention on ${labels[pair % P]} changed is excluded (95 %).`;
}

// -- the panel of one effect --

function agreement(pair, sites) {
  const used = sites.filter((site) => !site.aside).length;
  if (used < 2) return "Only one site measured it, so that agreement between sites cannot be tested.";
  const p = effects.chance[pair];
  const odds = p < 0.001 ? "less than 0.001" : p.toFixed(p < 0.1 ? 3 : 2);
  if (p < sized.unequal) return `The sites differ: by chance, differences as large as theirs have a probability of ${odds}. The interval includes the spread between sites.`;
  if (p < 0.1) return `The sites differ somewhat more than usual: by chance, differences as large as theirs have a probability of ${odds}.`;
  return `The sites agree: by chance, differences as large as theirs have a probability of ${odds}.`;
}

function directText(a, d) {
  const pair = a * P + d;
  const { weight, error, verdict, open } = effects.direct;
  if (pairs.verdict[pair] === 1) return "";
  const size = around(weight[pair], error[pair]);
  if (verdict[pair] === 2) return `Direct effect, not through other labels: ${signed(size.value)} (${range(size)}).`;
  if (verdict[pair] === 1) return "The effect is not direct: it passes through other labels.";
  const why = open[pair] ? " Pairs that no site measured may lie between." : "";
  return `Whether it is direct is undetermined: the direct part is ${signed(size.value)} (${range(size)}).${why}`;
}

function arbitrary(a, d) {
  const names = [a, d].filter((i) => !sized.oriented[i]).map((i) => labels[i]);
  if (!names.length) return "";
  return `The sign says nothing: no intervention shows in which direction it moved ${names.join(" and ")}.`;
}

function totalText(a, d) {
  const pair = a * P + d;
  const size = around(effects.total[pair], effects.error[pair]);
  const numbers = `${signed(size.value)} (${size.low === size.high ? "" : "95 % interval "}${range(size)})`;
  if (pairs.verdict[pair] === 1) return `Measured: ${numbers} ${SIZE_UNIT}. It counts as zero, because ${labels[a]} is not an ancestor of ${labels[d]}.`;
  return `Moving ${labels[a]} by one standard deviation changes ${labels[d]} by ${numbers} ${SIZE_UNIT}.`;
}

async function effectPanel(a, d) {
  if (!sized) return [];
  const pair = a * P + d;
  const panel = element("section", { id: "effect", class: "effect", "aria-label": `Effect of ${labels[a]} on ${labels[d]}` },
    element("h3", {}, "Effect of ", element("bdi", {}, labels[a]), " on ", element("bdi", {}, labels[d])));
  if (!known(pair)) {
    panel.append(element("p", {}, pairs.verdict[pair] === 1 ? "None, by the verdict." : "Undetermined: no site with hard interventions on both labels measured it."));
    return [panel];
  }
  const sites = await siteEffects(a, d);
  panel.append(element("p", { class: "big" }, totalText(a, d)));
  const [direct, sign] = [directText(a, d), arbitrary(a, d)];
  if (direct) panel.append(element("p", {}, direct));
  panel.append(forest(pair, sites), element("p", { class: "tiny" }, agreement(pair, sites)));
  if (sites.some((site) => site.aside)) {
    panel.append(element("p", { class: "tiny" }, "×: set aside, because it stands far apart from the other sites. It is no part of “all sites”."));
  }
  if (sign) panel.append(element("p", { class: "tiny" }, sign));
  return [panel];
}

function forest(pair, sites) {
  const all = around(effects.total[pair], effects.error[pair]);
  const scale = scaleOf([...sites, all]);
  const row = (name, size, kind) => element("tr", { class: kind },
    element("th", { scope: "row", title: name }, element("bdi", {}, name)),
    element("td", { class: "plot" }, mark(scale, size, kind)),
    element("td", { class: "num" }, `${kind === "aside" ? "× " : ""}${signed(size.value)}`, element("span", { class: "sr" }, ` (${range(size)})${kind === "aside" ? ", set aside" : ""}`)));
  return element("table", { id: "forest", class: "forest" },
    element("caption", { class: "sr" }, "Effect at every site, and at all together"),
    element("thead", {}, element("tr", {}, ...["site", "95 % interval", "effect"].map((x) => element("th", { scope: "col" }, x)))),
    element("tbody", {}, ...sites.map((site) => row(site.name, site, site.aside ? "aside" : "site")),
      row("all sites", all, "sum"), axisRow(scale)));
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
  const ticks = [scale.low, 0, scale.high].filter((x, k) => k === 1 || Math.abs(x) > 0.15 * (scale.high - scale.low));
  ticks.forEach((x) => axis.append(shape("text", { x: scale.at(x), y: "14" }, signed(x))));
  return element("tr", { class: "axis" }, element("td"), element("td", { class: "plot" }, axis), element("td"));
}
