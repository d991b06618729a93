// What if: labels are moved by sliders, and all others follow by their total effects.
const MOST_PUSH = 3;
const pushes = new Map();

// Total effects add up; a pair that is "not ancestor" has none, and keeps its interval.
function expectedChanges() {
  const list = labels.map(() => ({ value: 0, offset: 0, variance: 0 }));
  pushes.forEach((amount, j) => list.forEach((out, i) => {
    if (i === j) {
      out.value += amount;
      return;
    }
    const pair = j * P + i;
    const no = pairs.verdict[pair] === 1;
    const [estimate, error] = [pairs.total[pair], pairs.error[pair]];
    out.value += amount * (no ? 0 : estimate);
    if (no && Number.isNaN(estimate)) return;
    out.offset += no ? amount * estimate : 0;
    out.variance += (amount * error) ** 2;
  }));
  return list.map(({ value, offset, variance }) => {
    const half = raw.interval * Math.sqrt(variance);
    return { value, low: Math.min(value + offset - half, value), high: Math.max(value + offset + half, value) };
  });
}

// The interval. A value at its end is that of a pair without an effect, of which the data exclude less.
function between(size) {
  const { value, low, high } = size;
  if (low === high) return "";
  if (value === low) return ` (at most ${signed(high)})`;
  return value === high ? ` (at least ${signed(low)})` : ` (${range(size)})`;
}

function drawShifts() {
  const changes = expectedChanges();
  const scale = scaleOf(changes);
  const rows = raw.layered.map((i) => {
    const size = changes[i];
    const open = Number.isNaN(size.value);
    const kind = size.low > 0 ? "up" : size.high < 0 ? "down" : "zero";
    const text = open ? ["undetermined"] : [signed(size.value), element("span", { class: "between" }, between(size))];
    return element("tr", { "data-label": labels[i] },
      element("th", { scope: "row", title: labels[i] }, element("bdi", {}, labels[i])),
      element("td", { class: "plot" }, mark(scale, size, kind)),
      element("td", { class: open ? "num open-effect" : "num" }, ...text));
  });
  $("shifts").tBodies[0].replaceChildren(...rows, axisRow(scale));
}

function addPush(i, amount = 1) {
  if (pushes.has(i)) {
    $(`push-${i}`).focus();
    return;
  }
  pushes.set(i, amount);
  const id = `push-${i}`;
  const shown = element("output", { for: id }, `${signed(amount, 1)} sd`);
  const slider = element("input", { type: "range", id, min: -MOST_PUSH, max: MOST_PUSH, step: "0.1", value: amount,
    "aria-valuetext": `${signed(amount, 1)} standard deviations` });
  slider.addEventListener("input", () => {
    const chosen = Number(slider.value);
    pushes.set(i, chosen);
    shown.textContent = `${signed(chosen, 1)} sd`;
    slider.setAttribute("aria-valuetext", `${signed(chosen, 1)} standard deviations`);
    drawShifts();
  });
  const line = element("li", {}, element("label", { for: id, title: labels[i] }, "Move ", element("bdi", {}, labels[i])), slider, shown,
    element("button", { type: "button", class: "tool", "aria-label": `Do not move ${labels[i]}`, onclick: () => {
      pushes.delete(i);
      line.remove();
      drawShifts();
      $("push").focus();
    } }, "×"));
  $("pushes").append(line);
  drawShifts();
}

function startWhatIf() {
  if (!$("push")) return;
  $("push-add").addEventListener("click", () => addPush(position.get($("push").value)));
  addPush(position.get($("push").value));
}
