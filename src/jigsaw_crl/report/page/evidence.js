// What one client says: filled discs yes, rings no, dashes cannot say; the larger, the stronger.
const STRONG = 8;
const heat = emptyGrid([]);
let heatClient = null;

function said(a, d) {
  const at = heatClient.row.get(a) * heat.order.length + heatClient.row.get(d);
  return { value: heatClient.evidence[at], stance: heatClient.stance[at] };
}

async function chooseHeat() {
  if (!raw.clients.length) return;
  heatClient = await readClient(Number($("client").value));
  heat.order = raw.layered.filter((i) => heatClient.row.has(i));
  pointAt(heat, ...(picked === null ? [null, null] : [Math.floor(picked / P), picked % P]));
  drawHeat();
}

function drawHeat() {
  if (!heatClient) return;
  const { order } = heat;
  const n = order.length;
  heat.left = heat.top = margin(order);
  heat.cell = n > NAMED ? 8 : Math.max(18, Math.min(34, Math.floor(560 / n)));
  const side = heat.left + n * heat.cell + 2;
  const pen = sharp($("heat"), side, side);
  if (n <= NAMED) names(pen, order, heat.cell, heat.left, heat.top);
  const ink = { yes: colour("--yes"), no: colour("--against"), line: colour("--line"), open: colour("--soft") };
  order.forEach((a, r) => order.forEach((d, c) => {
    const [x, y] = [heat.left + (c + 0.5) * heat.cell, heat.top + (r + 0.5) * heat.cell];
    pen.strokeStyle = ink.line;
    pen.lineWidth = 1;
    if (n <= NAMED) pen.strokeRect(x - heat.cell / 2, y - heat.cell / 2, heat.cell, heat.cell);
    if (a !== d) drawSaid(pen, ink, said(a, d), x, y);
  }));
  drawCursor(pen, heat);
}

function drawSaid(pen, ink, { value, stance }, x, y) {
  pen.beginPath();
  pen.lineWidth = Math.min(2.5, Math.max(1, heat.cell / 10));
  if (stance === 0) {
    pen.strokeStyle = ink.open;
    pen.moveTo(x - heat.cell / 5, y);
    pen.lineTo(x + heat.cell / 5, y);
    pen.stroke();
    return;
  }
  // A client that only states has no number.
  const share = Number.isNaN(value) ? 1 : Math.min(1, Math.abs(value) / STRONG);
  const size = (heat.cell / 2 - 1.5) * Math.sqrt(share);
  pen.arc(x, y, Math.max(size, 0.8), 0, 7);
  pen.fillStyle = pen.strokeStyle = stance > 0 ? ink.yes : ink.no;
  if (stance > 0) pen.fill();
  else pen.stroke();
}

function saidText(a, d) {
  if (a === d) return labels[a];
  const { value, stance } = said(a, d);
  return `Is ${labels[a]} an ancestor of ${labels[d]}? ${heatClient.name}: ${SAYS[stance + 1]} (evidence ${evidenceText(value)}).`;
}

answerCells($("heat"), heat, drawHeat, (a, d) => { $("heat-cell").textContent = saidText(a, d); });
$("client").addEventListener("change", chooseHeat);
