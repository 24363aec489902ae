// What all parts of the page share: data, numbers in words, colours, the theme.

const $ = id => document.getElementById(id);
const data = id => JSON.parse($(id).textContent);

/// An element. Text is always text, never markup: names in it come from files that anybody may have written.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "onclick") node.addEventListener("click", value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

const whole = new Intl.NumberFormat("en-US");
const count = n => whole.format(n);
/// As the terminal report has it: a mean that is no whole number does not look like one.
function mean(value) {
  for (let digits = 2; digits <= 9; digits++) {
    const text = value.toFixed(digits);
    if (Number(text) % 1 !== 0 || value % 1 === 0) return text;
  }
  return String(value);
}
function percent(share) {
  if (!isFinite(share)) return "-";
  const value = share * 100, small = Math.min(Math.abs(value), Math.abs(100 - value));
  const digits = small === 0 ? 1 : Math.min(12, Math.max(1, 1 - Math.floor(Math.log10(small) + 1e-6)));
  return value.toFixed(digits) + " %";
}
const hex = (n, width = 4) => "0x" + n.toString(16).padStart(width, "0");
const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
const base = path => path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);

/// Value, length, value, length ... to one value each.
function unfold(runs, n) {
  const out = new Float64Array(n);
  let at = 0;
  for (let i = 0; i + 1 < runs.length; i += 2) {
    out.fill(runs[i], at, at + runs[i + 1]);
    at += runs[i + 1];
  }
  return out;
}

/// Numbers in groups of seven bits. Below 2^53, so arithmetic, not shifts.
function varints(text, n) {
  const bytes = atob(text), out = new Float64Array(n);
  let at = 0, value = 0, scale = 1;
  for (let i = 0; i < bytes.length; i++) {
    const b = bytes.charCodeAt(i);
    value += (b & 127) * scale;
    if (b & 128) scale *= 128;
    else {
      out[at++] = value;
      value = 0;
      scale = 1;
    }
  }
  return out;
}

/// The theme: that of the system unless the button says otherwise.
const themed = [];
{
  const button = $("theme"), names = ["auto", "light", "dark"], root = document.documentElement;
  let now = "auto";
  try { now = localStorage.getItem("lanescope-theme") || "auto"; } catch { /* A file need not have a store. */ }
  const apply = () => {
    if (!names.includes(now)) now = "auto";
    if (now === "auto") root.removeAttribute("data-theme");
    else root.dataset.theme = now;
    button.querySelector("span").textContent = now;
    themed.forEach(redraw => redraw());
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    now = names[(names.indexOf(now) + 1) % names.length];
    try { localStorage.setItem("lanescope-theme", now); } catch { /* As above. */ }
    apply();
  });
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

/// Colours as the style sheet has them now, for the canvas.
function colours(names) {
  const probe = document.body.appendChild(el("i", { hidden: true }));
  const found = {};
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}
