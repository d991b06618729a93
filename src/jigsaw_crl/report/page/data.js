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

// Several tables of n numbers each, one after the other.
async function unpackTables(text, n) {
  const numbers = new Float64Array((await unpack(text)).buffer);
  return Array.from({ length: numbers.length / n }, (_, k) => numbers.subarray(k * n, (k + 1) * n));
}

// One number per ordered pair, at a * P + d, in every column of the table of pairs.
const pairs = {};

async function readPairs() {
  const tables = await unpackTables(raw.table, P * P);
  raw.columns.forEach((name, k) => { pairs[name] = tables[k]; });
}

// Marks of a verdict: it rests on one client, or it is contested.
const rests = (pair) => pairs.rests[pair] >= 0;
const contested = (pair) => pairs.contested[pair] === 1;

function marks(pair) {
  const badge = (text, title) => element("span", { class: "badge one", title }, text);
  return [
    ...(rests(pair) ? [badge("one client", `rests on ${raw.clients[pairs.rests[pair]].name}`)] : []),
    ...(contested(pair) ? [badge("contested", "see the certificate")] : []),
  ];
}

// The certificate of a pair; empty where the page has none.
const textRows = new Map();

async function textOf(a, d) {
  if (!textRows.has(a)) textRows.set(a, unpackText(raw.texts[a]).then(JSON.parse));
  return (await textRows.get(a))[d];
}

// What one client brings, by pair of its own labels; sizes of effects only where it measured some.
const clientCache = new Map();

function readClient(k) {
  if (!clientCache.has(k)) {
    const { name, members, table } = raw.clients[k];
    const row = new Map(members.map((label, i) => [label, i]));
    clientCache.set(k, unpackTables(table, members.length ** 2).then(
      ([stance, evidence, total, error, aside]) => ({ name, members, row, stance, evidence, total, error, aside })));
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
    out.push({ name: c.name, stance: c.stance[at], evidence: c.evidence[at],
      size: c.total && !Number.isNaN(c.total[at]) ? { ...around(c.total[at], c.error[at]), aside: c.aside[at] === 1 } : null });
  }
  return out;
}

function evidenceText(value) {
  if (Number.isNaN(value)) return "none";
  if (!Number.isFinite(value)) return value > 0 ? "certain: yes" : "certain: no";
  return signed(value, 1);
}

// Algorithm 3 gives no probabilities: it states a pair, or says nothing about it.
const STATES = raw.mode === "paper";
const chance = (pair) => {
  if (STATES) return pairs.verdict[pair] === 2 ? "stated" : "not stated";
  const text = pairs.probability[pair].toFixed(raw.decimals);
  if (raw.mode === "exact" && pairs.verdict[pair]) return text[0];
  const least = 10 ** -raw.decimals;
  if (Number(text) === 1) return `> ${(1 - least).toFixed(raw.decimals)}`;
  return Number(text) === 0 ? `< ${least.toFixed(raw.decimals)}` : text;
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
