// The table of pairs: filtered, sorted, fifty lines at a time.
const PAGE = 50;
const view = { list: [], page: 0, key: "probability", down: true, mask: new Uint8Array(P * P).fill(1) };

const shown = (pair) => view.mask[pair] === 1;

function matcher(text) {
  const parts = text.toLowerCase().split(/\s*(?:→|->)\s*/);
  const fits = parts.map((part) => labels.map((label) => label.toLowerCase().includes(part.trim())));
  if (parts.length > 1) return (a, d) => fits[0][a] && fits[1][d];
  return (a, d) => fits[0][a] || fits[0][d];
}

async function whoFits(who) {
  if (who === "disagree") return (pair) => pairs.yes[pair] > 0 && pairs.no[pair] > 0;
  if (who === "nobody") {
    return (pair) => (pairs.verdict[pair] === 2 && !pairs.yes[pair]) || (pairs.verdict[pair] === 1 && !pairs.no[pair]);
  }
  if (who === "rests") return rests;
  if (who === "contested") return contested;
  if (!who.startsWith("only:")) return () => true;
  const client = await readClient(Number(who.slice(5)));
  const n = client.members.length;
  return (pair) => {
    const [i, j] = [client.row.get(Math.floor(pair / P)), client.row.get(pair % P)];
    if (i === undefined || j === undefined) return false;
    const stance = client.stance[i * n + j];
    return (stance > 0 && pairs.verdict[pair] === 2 && pairs.yes[pair] === 1)
      || (stance < 0 && pairs.verdict[pair] === 1 && pairs.no[pair] === 1);
  };
}

async function filterPairs() {
  const fits = matcher($("search").value);
  const verdict = $("verdict").value;
  const who = await whoFits($("who").value);
  const list = [];
  view.mask.fill(0);
  for (let a = 0; a < P; a += 1) {
    for (let d = 0; d < P; d += 1) {
      const pair = a * P + d;
      if (a === d || (verdict !== "" && pairs.verdict[pair] !== Number(verdict))) continue;
      if (!fits(a, d) || !who(pair)) continue;
      view.mask[pair] = 1;
      list.push(pair);
    }
  }
  view.list = list;
  sortPairs();
  requestMatrix();
}

const KEYS = {
  a: (pair) => Math.floor(pair / P), d: (pair) => pair % P, verdict: (pair) => pairs.verdict[pair],
  probability: (pair) => pairs.probability[pair], yes: (pair) => pairs.yes[pair], no: (pair) => pairs.no[pair],
  effect: (pair) => effectSize(pair),
};

// Pairs without a known effect come last.
function effectSize(pair) {
  if (pairs.verdict[pair] === 1) return 0;
  return known(pair) ? Math.abs(pairs.total[pair]) : -1;
}

function effectCell(pair) {
  if (pairs.verdict[pair] === 1) return "none";
  return known(pair) ? signed(pairs.total[pair]) : "unknown";
}

function sortPairs() {
  const key = KEYS[view.key];
  const sign = view.down ? -1 : 1;
  view.list.sort((x, y) => sign * (key(x) - key(y)) || x - y);
  view.page = 0;
  drawRows();
}

function drawRows() {
  const first = view.page * PAGE;
  const rows = view.list.slice(first, first + PAGE).map((pair) => {
    const [a, d] = [Math.floor(pair / P), pair % P];
    const row = element("tr", { "data-pair": pair, class: pair === picked ? "picked" : "" },
      element("td", { class: "label", title: labels[a] }, element("bdi", {}, labels[a])),
      element("td", { class: "label", title: labels[d] }, element("bdi", {}, labels[d])),
      element("td", {}, element("span", { class: `say v${pairs.verdict[pair]}` }, WORDS[pairs.verdict[pair]]), " ", ...marks(pair)),
      element("td", { class: "num" }, chance(pair)),
      element("td", { class: "num" }, String(pairs.yes[pair])),
      element("td", { class: `num${pairs.yes[pair] && pairs.no[pair] ? " hot" : ""}` }, String(pairs.no[pair])),
      ...(sized ? [element("td", { class: "num" }, effectCell(pair))] : []),
      element("td", {}, element("button", { type: "button", class: "pair", "aria-label": `Why: ${labels[a]} to ${labels[d]}` }, "why?")));
    row.addEventListener("click", () => explain(a, d, row.querySelector("button")));
    return row;
  });
  $("rows").replaceChildren(...rows);
  const total = view.list.length;
  $("count").textContent = total
    ? `Pairs ${(first + 1).toLocaleString("en")} to ${Math.min(first + PAGE, total).toLocaleString("en")} of ${total.toLocaleString("en")}`
    : "No pair matches.";
  $("previous").disabled = view.page === 0;
  $("following").disabled = first + PAGE >= total;
}

// Turns to the page with the picked pair, if the filters let it through, and marks its line.
function showRow() {
  const at = picked === null ? -1 : view.list.indexOf(picked);
  const page = Math.floor(at / PAGE);
  if (at >= 0 && page !== view.page) {
    view.page = page;
    drawRows();
  }
  document.querySelectorAll("#rows tr").forEach((row) => {
    row.classList.toggle("picked", Number(row.dataset.pair) === picked);
  });
}

document.querySelectorAll("#table thead button").forEach((button) => {
  button.addEventListener("click", () => {
    const key = button.dataset.sort;
    view.down = view.key === key ? !view.down : !(key === "a" || key === "d");
    view.key = key;
    document.querySelectorAll("#table thead th[aria-sort]").forEach((head) => head.setAttribute("aria-sort", "none"));
    button.closest("th").setAttribute("aria-sort", view.down ? "descending" : "ascending");
    sortPairs();
  });
});
let typing = 0;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(filterPairs, P > 60 ? 150 : 0);
});
["verdict", "who"].forEach((id) => $(id).addEventListener("change", filterPairs));
$("previous").addEventListener("click", () => { view.page -= 1; drawRows(); });
$("following").addEventListener("click", () => { view.page += 1; drawRows(); });
