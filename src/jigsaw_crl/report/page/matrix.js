// The pair matrix on a canvas.
const canvas = $("matrix");
const NAMED = 40;
const NAME_FONT = "12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const grid = emptyGrid(raw.layered);

function short(label, most = 16) {
  const letters = [...label];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : label;
}

function sharp(target, width, height) {
  const ratio = window.devicePixelRatio || 1;
  target.width = Math.round(width * ratio);
  target.height = Math.round(height * ratio);
  target.style.width = `${width}px`;
  target.style.height = `${height}px`;
  const pen = target.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

// Row names to the left, column names upright above.
function names(pen, order, cell, left, top) {
  pen.fillStyle = colour("--ink");
  pen.font = NAME_FONT;
  pen.textBaseline = "middle";
  order.forEach((i, k) => {
    pen.textAlign = "right";
    pen.fillText(short(labels[i]), left - 8, top + (k + 0.5) * cell);
    pen.save();
    pen.translate(left + (k + 0.5) * cell, top - 8);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(short(labels[i]), 0, 0);
    pen.restore();
  });
}

// Room for the names, measured: letters of some scripts are wider than others.
function margin(order) {
  if (order.length > NAMED) return 4;
  const pen = canvas.getContext("2d");
  pen.save();
  pen.font = NAME_FONT;
  const widest = Math.max(0, ...order.map((i) => pen.measureText(short(labels[i])).width));
  pen.restore();
  return 16 + Math.ceil(widest);
}

function drawMatrix() {
  grid.left = grid.top = margin(grid.order);
  const room = Math.min(canvas.parentElement.clientWidth, 900) - grid.left - 4;
  grid.cell = Math.max(P > NAMED ? 2 : 15, Math.min(44, Math.floor(room / P)));
  const side = grid.cell * P + 2;
  const pen = sharp(canvas, grid.left + side, grid.top + side);
  if (P <= NAMED) names(pen, grid.order, grid.cell, grid.left, grid.top);
  const ink = { yes: colour("--yes"), no: colour("--no"), open: colour("--open"), soft: colour("--open-soft"), line: colour("--card") };
  const gap = grid.cell > 6 ? 1 : 0;
  grid.order.forEach((a, r) => grid.order.forEach((d, c) => {
    if (a !== d) drawCell(pen, ink, a * P + d, grid.left + c * grid.cell, grid.top + r * grid.cell, grid.cell - gap);
  }));
  drawCursor(pen, grid);
}

function drawCell(pen, ink, pair, x, y, size) {
  const code = pairs.verdict[pair];
  pen.globalAlpha = shown(pair) ? 1 : 0.1;
  pen.fillStyle = code === 2 ? ink.yes : code === 1 ? ink.no : ink.soft;
  pen.fillRect(x, y, size, size);
  if (code === 0) {
    // Striped, and filled from below to its probability.
    const high = STATES ? 0 : Math.max(1, size * pairs.probability[pair]);
    pen.fillStyle = ink.open;
    if (size < 8 && !STATES) {
      if (pairs.probability[pair] >= 0.5) pen.fillRect(x, y, size, size);
      else pen.fillRect(x, y, size, size / 2);
    } else for (let k = 0; k < high; k += 4) pen.fillRect(x, y + size - k - 2, size, 2);
  } else if (code === 2 && size > 12) {
    pen.fillStyle = ink.line;
    pen.beginPath();
    pen.arc(x + size / 2, y + size / 2, size / 7, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

function cellText(a, d) {
  if (a === d) return labels[a];
  const pair = a * P + d;
  const effect = known(pair) && pairs.verdict[pair] !== 1 ? `, ${raw.effect} ${signed(pairs.total[pair])}` : "";
  return `${labels[a]} → ${labels[d]}: ${WORDS[pairs.verdict[pair]]}, ${chanceText(pair)}${effect}.`;
}

let waiting = false;
function requestMatrix() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawMatrix();
  });
}

answerCells(canvas, grid, requestMatrix, (a, d) => { $("cell").textContent = cellText(a, d); });
$("matrix-order").addEventListener("change", () => {
  grid.order = $("matrix-order").value === "name" ? labels.map((_, i) => i) : raw.layered;
  pointAt(grid, ...(picked === null ? [null, null] : [Math.floor(picked / P), picked % P]));
  requestMatrix();
});
