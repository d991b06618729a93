// A grid of pairs on a canvas: pointer and arrow keys find a cell, a click or Enter explains it.
// Rows are `order[row]` as ancestors, columns as descendants; a row of -1 is no cell.
const emptyGrid = (order) => ({ order, cell: 10, left: 0, top: 0, row: -1, column: -1 });

function pointAt(grid, a, d) {
  const [row, column] = [grid.order.indexOf(a), grid.order.indexOf(d)];
  [grid.row, grid.column] = row < 0 || column < 0 ? [-1, -1] : [row, column];
}

function drawCursor(pen, grid) {
  if (grid.row < 0) return;
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 2;
  pen.strokeRect(grid.left + grid.column * grid.cell - 1, grid.top + grid.row * grid.cell - 1, grid.cell + 1, grid.cell + 1);
}

function cellAt(grid, event) {
  const [x, y] = [event.offsetX - grid.left, event.offsetY - grid.top];
  const [column, row] = [Math.floor(x / grid.cell), Math.floor(y / grid.cell)];
  const n = grid.order.length;
  return row >= 0 && column >= 0 && row < n && column < n ? [row, column] : null;
}

function answerCells(target, grid, draw, tell) {
  const labelsAt = (row, column) => [grid.order[row], grid.order[column]];
  const ask = () => {
    const [a, d] = labelsAt(grid.row, grid.column);
    if (a !== d) explain(a, d, target);
  };
  const move = (row, column) => {
    const last = grid.order.length - 1;
    [grid.row, grid.column] = [Math.min(last, Math.max(0, row)), Math.min(last, Math.max(0, column))];
    draw();
    tell(...labelsAt(grid.row, grid.column));
  };
  target.addEventListener("pointermove", (event) => {
    const at = cellAt(grid, event);
    if (at) tell(...labelsAt(...at));
  });
  target.addEventListener("click", (event) => {
    const at = cellAt(grid, event);
    if (!at) return;
    move(...at);
    ask();
  });
  target.addEventListener("keydown", (event) => {
    if (event.key in ARROWS) {
      event.preventDefault();
      const [dx, dy] = ARROWS[event.key];
      const [row, column] = grid.row < 0 ? [0, 1] : [grid.row, grid.column];
      move(row + dy, column + dx);
    } else if ((event.key === "Enter" || event.key === " ") && grid.row >= 0) {
      event.preventDefault();
      ask();
    }
  });
}
