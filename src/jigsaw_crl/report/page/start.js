// Theme, downloads, and the first drawing.
const theme = $("theme");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.setAttribute("aria-pressed", String(dark));
  if (pairs.verdict) {
    requestMatrix();
    drawHeat();
  }
}

setTheme(prefersDark.matches);
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches));
theme.addEventListener("click", () => setTheme(theme.getAttribute("aria-pressed") !== "true"));

document.querySelectorAll("[data-file]").forEach((button) => {
  button.addEventListener("click", async () => {
    const name = button.dataset.file;
    const type = { csv: "text/csv", svg: "image/svg+xml", graphml: "application/xml" }[name.split(".").pop()];
    const address = URL.createObjectURL(new Blob([await unpack(raw.files[name])], { type }));
    const link = element("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
});

document.querySelectorAll("[data-enlarge]").forEach((button) => {
  button.addEventListener("click", () => {
    const large = button.closest(".piece").classList.toggle("large");
    button.setAttribute("aria-pressed", String(large));
  });
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (why.classList.contains("open")) closeWhy();
  else if (selected !== null) clearSelection();
});

// A box whose content is wider than itself says so: without a scroll bar, nobody would know.
document.querySelectorAll(".scroll, .matrix-wrap, #hasse-box").forEach((wide) => {
  const hint = element("p", { class: "tiny swipe", "aria-hidden": "true" }, "More to the right: swipe or scroll →");
  wide.before(hint);
  const check = () => { hint.hidden = wide.scrollWidth <= wide.clientWidth + 1; };
  const watch = new ResizeObserver(check);
  watch.observe(wide);
  watch.observe(wide.firstElementChild);
});

let lastWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === lastWidth || !pairs.verdict) return;
  lastWidth = window.innerWidth;
  fit();
  requestMatrix();
});

fit();
if (!("DecompressionStream" in window)) {
  document.querySelector("main").prepend(element("p", { class: "note warn" },
    "This browser is too old to unpack the pairs and certificates: use one from 2023 or later."));
}
readPairs().then(async () => {
  startWhatIf();
  await filterPairs();
  await chooseHeat();
  document.documentElement.dataset.ready = "yes";
});
