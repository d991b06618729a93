// The panel with explanations: a label with its relatives, or a pair with its certificate.
const why = $("why");
const hint = $("why-body").firstElementChild;
// Stands for a certificate that is not in the page.
const LEFT_OUT = "This certificate is not in the page, which would be too long. Print it with: jigsaw explain DIR ANCESTOR DESCENDANT";
let returnTo = null;
let asked = 0;
// The pair that is explained, and marked wherever it is shown; null if none is.
let picked = null;

function openWhy(title, ...content) {
  $("why-title").textContent = title;
  $("why-body").replaceChildren(...content);
  why.classList.add("open");
  document.body.classList.add("asked");
  why.scrollTop = 0;
}

function closeWhy() {
  why.classList.remove("open");
  document.body.classList.remove("asked");
  $("why-title").textContent = "Why?";
  $("why-body").replaceChildren(hint);
  markPair(null);
  if (returnTo && returnTo.isConnected) returnTo.focus({ preventScroll: true });
  returnTo = null;
}

function pairButton(a, d, text) {
  return element("button", { type: "button", class: "pair", onclick: () => explain(a, d) },
    element("bdi", { title: labels[text] }, labels[text]));
}

function relatives(title, list, toPair) {
  const tags = element("div", { class: "tags" });
  // A long list would make the panel slow to draw; the table of pairs has them all.
  list.slice(0, 80).forEach((i) => tags.append(pairButton(...toPair(i), i)));
  if (list.length > 80) tags.append(`and ${list.length - 80} more in the table of pairs`);
  return [element("h3", {}, `${list.length} ${title}${list.length === 1 ? "" : "s"}`), list.length ? tags : ""];
}

function explainLabel(i, above, below) {
  asked += 1;
  returnTo = document.activeElement;
  openWhy(labels[i],
    ...relatives("ancestor", above, (a) => [a, i]),
    ...relatives("descendant", below, (d) => [i, d]),
    element("p", { class: "tiny" }, "Select one of them to read why."));
}

async function explain(a, d, from = null) {
  const turn = asked += 1;
  if (from) returnTo = from;
  const pair = a * P + d;
  const [proof, said] = await Promise.all([textOf(a, d), testimony(a, d)]);
  if (turn !== asked) return;
  const gauge = element("i");
  gauge.style.width = `${100 * pairs.probability[pair]}%`;
  const code = pairs.verdict[pair];
  const line = element("p", { class: "verdict-line" },
    element("span", { class: `say v${code}` }, WORDS[code]), ...marks(pair), element("span", {}, chanceText(pair)));
  openWhy(`${labels[a]} → ${labels[d]}?`, line, STATES ? "" : element("div", { class: "gauge", "aria-hidden": "true" }, gauge),
    element("pre", { id: "certificate", tabindex: "0" }, proof || LEFT_OUT), raw.units[pair] ? element("p", { class: "tiny" }, `In the sensors' units: ${raw.units[pair]}.`) : "",
    ...forest(pair, said),
    ...whoSays(pair, said),
    element("button", { type: "button", class: "tool", onclick: () => explain(d, a) }, "The other way round"));
  markPair(a, d);
  $("why-title").focus({ preventScroll: true });
}

function whoSays(pair, said) {
  if (!said.length) return [element("h3", {}, "No client has both labels")];
  const title = said.length === 1 ? "the client that has both labels says" : `the ${said.length} clients that have both labels say`;
  const lines = said.map((s) => element("tr", {}, element("td", {}, element("bdi", {}, s.name)),
    element("td", {}, SAYS[s.stance + 1]), element("td", { class: "num" }, evidenceText(s.evidence))));
  if (raw.mode === "evidence") lines.push(element("tr", { class: "sum" },
    element("td", { colspan: "2" }, "all together"), element("td", { class: "num" }, evidenceText(pairs.evidence[pair]))));
  return [element("h3", {}, `What ${title}`),
    element("table", {}, element("thead", {}, element("tr", {},
      ...["client", "says", "evidence"].map((x) => element("th", { scope: "col" }, x)))), element("tbody", {}, ...lines)),
    STATES ? "" : $("about-evidence").content.cloneNode(true)];
}

function markPair(a, d) {
  const before = picked;
  picked = a === null ? null : a * P + d;
  edges.forEach((edge) => {
    edge.classList.toggle("picked", a !== null && edge.dataset.a === labels[a] && edge.dataset.d === labels[d]);
  });
  if (a !== null) lightPair(a, d);
  else if (before !== null) unlight();
  showRow();
  [[grid, requestMatrix], [heat, drawHeat]].forEach(([cells, draw]) => {
    pointAt(cells, a, d);
    draw();
  });
}

$("why-close").addEventListener("click", closeWhy);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pair]");
  if (button && button.dataset.a !== undefined) {
    explain(position.get(button.dataset.a), position.get(button.dataset.d), button);
  }
});
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const [a, d] = [position.get($("ask-a").value), position.get($("ask-d").value)];
  const wrong = a === undefined || d === undefined ? "Choose two labels of this order." : a === d ? "Choose two different labels." : "";
  $("ask-no").textContent = wrong;
  if (!wrong) explain(a, d, $("ask-a"));
});
