// The Hasse diagram: highlights relatives, explains lines, and is walked with the arrow keys.
const hasse = $("hasse");
const box = $("hasse-box");
const nodes = [...hasse.querySelectorAll(".node")];
const edges = [...hasse.querySelectorAll(".edge")];
const natural = { width: hasse.viewBox.baseVal.width, height: hasse.viewBox.baseVal.height };
const centre = nodes.map((node) => {
  const text = node.querySelector("text");
  return [Number(text.getAttribute("x")), Number(text.getAttribute("y"))];
});
let selected = null;
let scale = 1;

function relativesOf(i) {
  const above = [];
  const below = [];
  for (let j = 0; j < P; j += 1) {
    if (j === i) continue;
    if (pairs.verdict[j * P + i] === 2) above.push(j);
    if (pairs.verdict[i * P + j] === 2) below.push(j);
  }
  return [above, below];
}

function select(i, show = true) {
  if (picked !== null) markPair(null);
  selected = i;
  const [above, below] = relativesOf(i);
  const [up, down] = [new Set(above), new Set(below)];
  nodes.forEach((node, j) => {
    node.classList.toggle("sel", j === i);
    node.classList.toggle("anc", up.has(j));
    node.classList.toggle("desc", down.has(j) && !up.has(j));
    node.classList.remove("via");
    node.setAttribute("aria-pressed", String(j === i));
  });
  up.add(i);
  down.add(i);
  edges.forEach((edge) => {
    const [a, d] = [position.get(edge.dataset.a), position.get(edge.dataset.d)];
    edge.classList.toggle("on-anc", up.has(a) && up.has(d));
    edge.classList.toggle("on-desc", down.has(a) && down.has(d));
  });
  hasse.classList.add("lit");
  $("clear").disabled = false;
  walkTo(i, false);
  if (show) explainLabel(i, above, below);
}

// The two labels of a pair, and what lies between them by the verdicts.
function lightPair(a, d) {
  selected = a;
  const between = (i) => pairs.verdict[a * P + i] === 2 && pairs.verdict[i * P + d] === 2;
  const path = pairs.verdict[a * P + d] === 2;
  const [from, to] = [(i) => i === a || between(i), (i) => i === d || between(i)];
  nodes.forEach((node, i) => {
    node.classList.remove("anc", "desc");
    node.classList.toggle("sel", i === a || i === d);
    node.classList.toggle("via", between(i));
    node.setAttribute("aria-pressed", String(i === a || i === d));
  });
  edges.forEach((edge) => {
    edge.classList.toggle("on-anc", path && from(position.get(edge.dataset.a)) && to(position.get(edge.dataset.d)));
    edge.classList.remove("on-desc");
  });
  hasse.classList.add("lit");
  $("clear").disabled = false;
}

function unlight() {
  selected = null;
  hasse.classList.remove("lit");
  nodes.forEach((node) => {
    node.classList.remove("sel", "anc", "desc", "via");
    node.setAttribute("aria-pressed", "false");
  });
  edges.forEach((edge) => edge.classList.remove("on-anc", "on-desc"));
  $("clear").disabled = true;
}

function clearSelection() {
  unlight();
  $("find").value = "";
  closeWhy();
}

function walkTo(i, focus = true) {
  nodes.forEach((node, j) => node.setAttribute("tabindex", j === i ? "0" : "-1"));
  if (focus) nodes[i].focus();
}

function reveal(i) {
  const [x, y] = centre[i];
  box.scrollTo({ left: x * scale - box.clientWidth / 2, top: y * scale - box.clientHeight / 2 });
}

// The nearest label in a direction; distance sideways counts double.
function neighbour(i, dx, dy) {
  let best = null;
  let least = Infinity;
  centre.forEach(([x, y], j) => {
    const [u, v] = [x - centre[i][0], y - centre[i][1]];
    const along = u * dx + v * dy;
    if (j === i || along < 1) return;
    const cost = along + 2 * Math.abs(u * dy + v * dx);
    if (cost < least) [best, least] = [j, cost];
  });
  return best;
}

const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
hasse.addEventListener("click", (event) => {
  const node = event.target.closest(".node");
  const edge = event.target.closest(".edge");
  if (node) select(nodes.indexOf(node));
  else if (edge) explain(position.get(edge.dataset.a), position.get(edge.dataset.d), box);
});
hasse.addEventListener("keydown", (event) => {
  const i = nodes.indexOf(event.target.closest(".node"));
  if (i < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    select(i);
  } else if (event.key in ARROWS) {
    event.preventDefault();
    const j = neighbour(i, ...ARROWS[event.key]);
    if (j !== null) {
      walkTo(j);
      reveal(j);
    }
  }
});

function zoom(to) {
  const middle = [(box.scrollLeft + box.clientWidth / 2) / scale, (box.scrollTop + box.clientHeight / 2) / scale];
  scale = Math.min(3, Math.max(0.05, to));
  hasse.setAttribute("width", natural.width * scale);
  hasse.setAttribute("height", natural.height * scale);
  box.scrollTo({ left: middle[0] * scale - box.clientWidth / 2, top: middle[1] * scale - box.clientHeight / 2, behavior: "instant" });
}

// Small diagrams grow a little to fill the card; large ones shrink to it. Up to 60 labels stay
// legible, few of them easily, and scroll where the card is too narrow.
const LEGIBLE = P <= 30 ? 0.85 : P <= 60 ? 0.5 : 0;

function fit() {
  const high = Math.min(0.74 * window.innerHeight, 756) / natural.height;
  zoom(Math.max(LEGIBLE, Math.min(1.35, (box.clientWidth - 4) / natural.width, Math.max(0.8, high))));
  box.scrollTo({ left: 0, top: 0, behavior: "instant" });
}

$("zoom-in").addEventListener("click", () => zoom(scale * 1.4));
$("zoom-out").addEventListener("click", () => zoom(scale / 1.4));
$("zoom-fit").addEventListener("click", fit);
$("clear").addEventListener("click", clearSelection);
$("find").addEventListener("change", () => {
  const i = position.get($("find").value);
  if (i === undefined) return;
  if (scale < 0.6) zoom(1);
  select(i);
  reveal(i);
});
