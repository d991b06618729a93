// What one client says: filled discs yes, rings no, dashes cannot say; the larger, the stronger.
const STRONG = 800;

async function drawHeat() {
  if (!raw.clients.length) return;
  const client = await readClient(Number($("client").value));
  const order = raw.layered.filter((i) => client.row.has(i));
  const n = order.length;
  const edge = margin(order);
  const cell = n > NAMED ? 8 : Math.max(18, Math.min(34, Math.floor(560 / n)));
  const pen = sharp($("heat"), edge + n * cell + 2, edge + n * cell + 2);
  if (n <= NAMED) names(pen, order, cell, edge, edge);
  const ink = { yes: colour("--yes"), no: colour("--against"), line: colour("--line") };
  order.forEach((a, r) => order.forEach((d, c) => {
    const [x, y] = [edge + (c + 0.5) * cell, edge + (r + 0.5) * cell];
    pen.strokeStyle = ink.line;
    pen.lineWidth = 1;
    if (n <= NAMED) pen.strokeRect(x - cell / 2, y - cell / 2, cell, cell);
    if (a === d) return;
    const at = client.row.get(a) * n + client.row.get(d);
    const [value, stance] = [client.evidence[at], client.stance[at] - 1];
    if (stance === 0) {
      pen.strokeStyle = colour("--edge");
      pen.beginPath();
      pen.moveTo(x - cell / 6, y);
      pen.lineTo(x + cell / 6, y);
      pen.stroke();
      return;
    }
    const size = (cell / 2 - 1.5) * Math.sqrt(Math.min(1, Math.abs(value) / STRONG));
    pen.beginPath();
    pen.arc(x, y, Math.max(size, 0.8), 0, 7);
    pen.fillStyle = pen.strokeStyle = stance > 0 ? ink.yes : ink.no;
    pen.lineWidth = Math.min(2.5, Math.max(1, cell / 10));
    if (stance > 0) pen.fill();
    else pen.stroke();
  }));
}

$("client").addEventListener("change", drawHeat);
