// The page's data: unpacked when first needed.
const raw = JSON.parse(document.getElementById("data").textContent);
const labels = raw.labels;
const P = labels.length;
const position = new Map(labels.map((label, i) => [label, i]));
const WORDS = ["undetermined", "not ancestor", "ancestor"];
const SAYS = ["no", "cannot say", "yes"];
const $ = (id) => document.getElementById(id);

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const unpackText = async (text) => new TextDecoder().decode(await unpack(text));

// One number per ordered pair, at a * P + d.
const pairs = { verdict: null, yes: null, no: null, probability: null };

async function readPairs() {
  const bytes = await unpack(raw.table);
  const n = P * P;
  ["verdict", "yes", "no"].forEach((name, k) => {
    pairs[name] = bytes.subarray(k * n, (k + 1) * n);
  });
  pairs.probability = new Float32Array(bytes.slice(3 * n, 7 * n).buffer);
}

// Verdicts that would be undetermined without one client: its number by pair.
const rests = new Map(raw.rests);
const restsOn = (pair) => raw.clients[rests.get(pair)].name;

function restsMark(pair) {
  if (!rests.has(pair)) return "";
  return element("span", { class: "badge one", title: `Rests on ${restsOn(pair)}: without it, the others do not decide this pair.` },
    "one client", element("span", { class: "sr" }, `: rests on ${restsOn(pair)}`));
}

const certificateRows = new Map();

async function certificate(a, d) {
  if (!certificateRows.has(a)) {
    certificateRows.set(a, unpackText(raw.certificates[a]).then(JSON.parse));
  }
  return (await certificateRows.get(a))[d];
}

const SURE = 32000;
const SILENT = -32768;
const clientCache = new Map();

function readClient(k) {
  if (!clientCache.has(k)) {
    const given = raw.clients[k];
    const row = new Map(given.members.map((label, i) => [label, i]));
    clientCache.set(k, Promise.all([unpack(given.stance), unpack(given.evidence)]).then(
      ([stance, evidence]) => ({
        name: given.name, members: given.members, row, stance,
        evidence: new Int16Array(evidence.buffer),
      })));
  }
  return clientCache.get(k);
}

// What the clients that have both labels say about a pair.
async function testimony(a, d) {
  const out = [];
  for (let k = 0; k < raw.clients.length; k += 1) {
    if (!raw.clients[k].members.includes(a) || !raw.clients[k].members.includes(d)) continue;
    const c = await readClient(k);
    const at = c.row.get(a) * c.members.length + c.row.get(d);
    out.push({ name: c.name, stance: c.stance[at] - 1, evidence: c.evidence[at] });
  }
  return out;
}

// The pooled log-odds of a pair, which its certificate quotes; null where there are none.
let pooled = null;

async function together(a, d) {
  if (!raw.pooled) return null;
  if (!pooled) pooled = new Int16Array((await unpack(raw.pooled)).buffer);
  return pooled[a * P + d];
}

function logOdds(value) {
  if (value === SILENT) return "none";
  if (Math.abs(value) >= SURE) return value > 0 ? "certain: yes" : "certain: no";
  const text = (Math.abs(value) / 100).toFixed(1);
  return text === "0.0" ? text : `${value < 0 ? "−" : "+"}${text}`;
}

// Algorithm 3 gives no probabilities: it states a pair, or says nothing about it.
const STATES = raw.mode === "paper";
const chance = (pair) => {
  if (STATES) return pairs.verdict[pair] === 2 ? "stated" : "not stated";
  return (pairs.probability[pair] / 10000).toFixed(3);
};
const chanceText = (pair) => (STATES ? chance(pair) : `probability ${chance(pair)}`);

// Elements are made from text only: no label is ever parsed as markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
