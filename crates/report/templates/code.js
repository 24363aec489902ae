// Source and machine code side by side, and what took the lanes of the chosen line.

const code = data("data-code");
const N = code.text.length, W = code.width;
for (const name of ["issued", "threads", "lost", "off", "discarded", "line", "site", "parts"]) code[name] = unfold(code[name], N);
{
  const pc = new Float64Array(N);
  let at = 0;
  for (const [first, step, n] of code.pc) for (let i = 0; i < n; i++) pc[at++] = first + step * i;
  code.pc = pc;
}
const branchOf = new Map(code.branches.map(b => [b.inst, b]));
const functionAt = new Map(code.functions);
/// Instructions of each line, ascending.
const instsOf = code.lines.map(() => []);
for (let i = 0; i < N; i++) if (instsOf[code.line[i]]) instsOf[code.line[i]].push(i);
const mostLost = Math.max(1, code.lines.reduce((most, l) => Math.max(most, l.lost), 0));
const longestInst = code.text.reduce((most, t, i) => Math.max(most, t.length + (branchOf.has(i) ? 28 : 0)), 20);
const chars = (values, least) => Math.max(least, ...values.map(v => count(v).length)) + 2;
const maximum = values => values.reduce((most, x) => Math.max(most, x), 0);
const lostWidth = chars([maximum(code.lost), mostLost], 4), issuedWidth = chars([maximum(code.issued)], 6);
const mostLostInst = code.lost.reduce((most, x) => Math.max(most, x), 1);

const lineName = l => l.file === null ? `block ${hex(code.pc[l.at])}` : `${base(code.files[l.file].name)}:${l.at}`;
const instName = i => {
  const line = code.lines[code.line[i]];
  return line && line.file !== null ? `${lineName(line)} (pc ${hex(code.pc[i])})` : `pc ${hex(code.pc[i])}`;
};

/// Rows of the source list for each file: lines with text, gaps, lines without.
const fileRows = new Map();
function rowsOf(file) {
  if (fileRows.has(file)) return fileRows.get(file);
  const stats = new Map();
  code.lines.forEach((l, index) => {
    if ((l.file === null ? -1 : l.file) === file) stats.set(l.at, index);
  });
  const rows = [], pieces = file < 0 ? [] : code.files[file].text, seen = new Set();
  let end = 0;
  for (const [first, text] of pieces) {
    if (rows.length) rows.push({ gap: true });
    text.split("\n").forEach((text, i) => {
      rows.push({ at: first + i, text, line: stats.get(first + i) });
      seen.add(first + i);
    });
    end = Math.max(end, first);
  }
  const others = [...stats.keys()].filter(at => !seen.has(at)).sort((a, b) => a - b);
  for (const at of others) rows.push({ at, line: stats.get(at), text: null });
  const found = { rows, longest: rows.reduce((most, r) => Math.max(most, r.text ? r.text.length : 0), 24) };
  fileRows.set(file, found);
  return found;
}

const state = { file: 0, line: -1, inst: -1, heat: "threads", only: false, insts: null };

function heatOf(issued, threads, lost, most) {
  if (!issued) return 0;
  return state.heat === "lost" ? 45 * lost / most : 45 * Math.pow(1 - threads / (issued * W), 1.2);
}
function meter(issued, threads) {
  const bar = el("span", { class: "lanes", "aria-hidden": "true" }, el("i"));
  bar.firstChild.style.width = `${100 * threads / (issued * W)}%`;
  return el("span", { class: "num heat gauge" }, bar, mean(threads / issued));
}
const cell = (text, kind) => el("span", { class: kind }, text);

const source = new List($("source"), {
  label: "Source lines",
  columns: [["Line", true], ["Threads/inst", true], ["Lost", true], ["Source"]],
  skip: row => rowsOf(state.file).rows[row]?.gap,
  cells(row, node) {
    const r = rowsOf(state.file).rows[row];
    if (r.gap) {
      node.classList.add("gap");
      node.append(cell("", null), cell("", null), cell("", null), cell("...", null));
      return;
    }
    const l = code.lines[r.line];
    const name = state.file < 0 ? hex(code.pc[r.at]) : r.at;
    const text = r.text === null ? (state.file < 0 ? "code without line information" : "(text not found)") : r.text;
    if (l && l.issued) {
      node.style.setProperty("--heat", `${heatOf(l.issued, l.threads, l.lost, mostLost)}%`);
      node.append(cell(name, "num dim"), meter(l.issued, l.threads), cell(l.lost ? count(l.lost) : "-", "num heat"), cell(text));
    } else {
      node.classList.toggle("idle", !r.text?.trim() || Boolean(l));
      node.append(cell(name, "num dim"), cell(l ? "not run" : "", "num dim"), cell(""), cell(text));
    }
    node.classList.toggle("picked", r.line !== undefined && r.line === state.line);
  },
  pick(row, how) {
    const r = rowsOf(state.file).rows[row];
    choose(r?.line ?? -1, -1, how, "source");
  },
});

const shown = row => state.insts ? state.insts[row] : row;
const rowOfInst = i => state.insts ? state.insts.indexOf(i) : i;

const sass = new List($("sass"), {
  label: "Instructions",
  columns: [["pc", true], ["Threads/inst", true], ["Lost", true], ["Issued", true], ["Instruction"], ["Pred. off", true]],
  cells(row, node) {
    const i = shown(row), issued = code.issued[i], b = branchOf.get(i), pc = cell(hex(code.pc[i]), "num dim");
    const text = cell(code.text[i] ?? "");
    if (issued) {
      node.style.setProperty("--heat", `${heatOf(issued, code.threads[i], code.lost[i], mostLostInst)}%`);
      if (b) text.append(el("span", { class: b.divergent ? "split" : "split none" }, `${count(b.divergent)} of ${count(b.executed)} split`));
      node.append(pc, meter(issued, code.threads[i]), cell(code.lost[i] ? count(code.lost[i]) : "-", "num heat"), cell(count(issued), "num"),
        text, cell(code.off[i] ? count(code.off[i]) : "-", "num"));
    } else {
      node.classList.add("idle");
      node.append(pc, cell("not run", "num"), cell(""), cell(""), text, cell(""));
    }
    node.classList.toggle("picked", code.line[i] === state.line);
  },
  pick(row, how) {
    const i = shown(row);
    if (i !== undefined) choose(code.line[i], i, how, "sass");
  },
});

/// Chooses a line, and an instruction of it if one is meant.
function choose(line, inst, how, from) {
  const l = code.lines[line];
  const file = l ? (l.file === null ? -1 : l.file) : state.file;
  const other = file !== state.file;
  const lineChanged = line !== state.line;
  Object.assign(state, { line, inst, file });
  if (other) {
    $("file").value = file;
    showFile();
  }
  if (state.only && (lineChanged || from !== "sass")) showInsts();
  const repaint = list => list.rows.forEach((node, row) => {
    const mine = list === sass ? code.line[shown(row)] : rowsOf(state.file).rows[row]?.line;
    node.classList.toggle("picked", mine === line && line >= 0);
  });
  if (from !== "source" && l) {
    const row = rowsOf(file).rows.findIndex(r => r.line === line);
    source.set(row, { centre: true });
  }
  if (from !== "sass" && l) {
    const first = inst >= 0 ? inst : instsOf[line].reduce((worst, i) => code.lost[i] > code.lost[worst] ? i : worst, instsOf[line].find(i => code.issued[i]) ?? instsOf[line][0]);
    if (first !== undefined) sass.set(rowOfInst(first), { centre: true });
  }
  repaint(source);
  repaint(sass);
  explain();
  if (how === "enter") {
    $("why").from = from === "sass" ? sass.view : source.view;
    $("why-h").focus();
  }
}

/// Shows an instruction wherever it is; `focus` also goes there with the keyboard.
function goTo(inst, focus) {
  choose(code.line[inst], inst, "link", "link");
  $("code").scrollIntoView({ block: "start" });
  if (focus) sass.view.focus({ preventScroll: true });
}

function link(inst, text) {
  return el("button", { type: "button", class: "link", onclick: () => goTo(inst, true) }, text);
}

function figures(list) {
  const dl = el("dl");
  for (const [name, value] of list) dl.append(el("dt", {}, name), el("dd", {}, value));
  return dl;
}

function partList(parts, lost) {
  const ul = el("ul");
  for (const [c, lanes, estimate] of parts) {
    const cause = code.causes[c];
    const bar = el("div", { class: "meter", "aria-hidden": "true" }, el("i"));
    bar.firstChild.style.width = `${100 * lanes / lost}%`;
    const item = el("li", {}, `${estimate ? "about " : ""}${percent(lanes / lost)} (${plural(lanes, "lane slot")}): ${cause.name}`);
    if (cause.inst !== null) {
      item.append(" at ", link(cause.inst, instName(cause.inst)), el("br"), el("code", {}, code.text[cause.inst] ?? ""));
    }
    item.append(bar);
    ul.append(item);
  }
  return ul;
}

/// The panel: figures of the line or instruction, what took its lanes, what it takes from others.
function explain() {
  const body = $("why-body"), l = code.lines[state.line], i = state.inst;
  body.replaceChildren();
  if (!l) {
    body.append(el("p", { class: "soft" }, "There is no code for this line."));
    return;
  }
  const rows = rowsOf(l.file === null ? -1 : l.file).rows;
  const text = i >= 0 ? code.text[i] : rows.find(r => r.line === state.line)?.text;
  const title = i >= 0 ? instName(i) : lineName(l);
  body.append(el("h4", {}, title));
  if (text) body.append(el("pre", {}, text.trim()));
  const of = i >= 0 ? { issued: code.issued[i], threads: code.threads[i], lost: code.lost[i], off: code.off[i], discarded: code.discarded[i] } : l;
  const parts = i >= 0 ? code.part_lists[code.parts[i]] : l.parts;
  if (!of.issued) {
    body.append(el("p", { class: "soft" }, "Not executed in this launch."));
  } else {
    body.append(figures([
      ["Warp instructions", count(of.issued)],
      ["Threads per instruction", `${mean(of.threads / of.issued)} of ${W}`],
      ["Lane slots lost", `${count(of.lost)} (${percent(of.lost / (of.issued * W))})`],
      ["Predicated off", count(of.off)],
      ...(of.discarded ? [["Worked for nothing", `${count(of.discarded)} (${percent(of.discarded / of.threads)})`]] : []),
    ]));
    if (of.discarded) body.append(el("p", {}, "It lies in a lock-step loop: lanes that are done turn on with the others, and their results are thrown away."));
    if (i < 0 && l.hot) body.append(el("p", {}, "In a hot loop, with few lanes."));
    if (i < 0 && l.predicated) body.append(el("p", {}, "The compiler predicated the choice on this line: no branch is left here."));
    body.append(el("h4", {}, "Why lanes are missing here"));
    body.append(of.lost ? partList(parts, of.lost) : el("p", { class: "soft" }, "None is missing."));
  }
  const here = i >= 0 ? [i] : instsOf[state.line];
  const steers = here.filter(k => branchOf.has(k));
  if (steers.length) {
    body.append(el("h4", {}, "What is decided here"));
    const ul = el("ul");
    for (const k of steers.slice(0, 20)) {
      const b = branchOf.get(k);
      const taken = b.kind === "exit" ? "left" : "took it";
      const item = el("li", {}, link(k, hex(code.pc[k])), " ", el("code", {}, code.text[k] ?? ""),
        el("br"), `${count(b.divergent)} of ${count(b.executed)} groups split; ${plural(b.taken, "lane")} ${taken}, ${count(b.passed)} did not.`);
      if (b.lanes) item.append(el("br"), `When it split, ${b.lanes}.`);
      const cost = code.causes.filter(c => c.inst === k).reduce((sum, c) => sum + c.lanes, 0);
      if (cost) item.append(el("br"), `It costs ${plural(cost, "lane slot")} in all, here and in what follows.`);
      ul.append(item);
    }
    body.append(ul);
    if (steers.length > 20) body.append(el("p", { class: "soft" }, `and ${steers.length - 20} more`));
  }
  const stacks = [...new Set(here.map(k => code.site[k]))].filter(s => s > 0);
  if (stacks.length) {
    body.append(el("h4", {}, stacks.length === 1 ? "Inlined at" : `Inlined at ${stacks.length} places`));
    const ul = el("ul");
    for (const s of stacks.slice(0, 10)) {
      const item = el("li");
      code.sites[s].forEach(([file, at, name], depth) => {
        const line = code.lines.findIndex(x => x.file === file && x.at === at);
        const place = `${base(code.files[file]?.name ?? "?")}:${at}`;
        if (depth) item.append(el("br"), "in code inlined at ");
        item.append(line >= 0 ? el("button", { type: "button", class: "link", onclick: () => { choose(line, -1, "link", "link"); source.view.focus({ preventScroll: true }); } }, place) : place);
        if (name) item.append(" as ", el("code", {}, name));
      });
      ul.append(item);
    }
    body.append(ul);
    if (stacks.length > 10) body.append(el("p", { class: "soft" }, `and ${stacks.length - 10} more`));
  }
}

function showFile() {
  const { rows, longest } = rowsOf(state.file);
  source.at = -1;
  source.show(rows.length, `max(100%, calc(${24 + lostWidth}ch + ${Math.min(longest, 2000)}ch))`);
}
function showInsts() {
  state.insts = state.only && state.line >= 0 ? instsOf[state.line] : null;
  sass.at = -1;
  sass.show(state.insts ? state.insts.length : N, `max(100%, calc(${39 + lostWidth + issuedWidth}ch + ${longestInst}ch))`);
}

{
  $("code-tools").hidden = $("panes").hidden = false;
  $("panes").style.setProperty("--lost", `${lostWidth}ch`);
  $("panes").style.setProperty("--issued", `${issuedWidth}ch`);
  const lostIn = new Map();
  code.lines.forEach(l => {
    const file = l.file === null ? -1 : l.file;
    lostIn.set(file, (lostIn.get(file) ?? 0) + l.lost);
  });
  const files = [...lostIn].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  for (const [file, lost] of files) {
    const same = files.filter(([other]) => other >= 0 && file >= 0 && base(code.files[other].name) === base(code.files[file].name));
    const name = file < 0 ? "code without line information" : same.length > 1 ? code.files[file].name : base(code.files[file].name);
    $("file").append(el("option", { value: file }, files.length > 1 ? `${name}: ${count(lost)} lost` : name));
  }
  if (files.length < 2) $("file").parentNode.hidden = true;
  state.file = files[0]?.[0] ?? 0;
  $("file").addEventListener("change", () => {
    Object.assign(state, { file: Number($("file").value), line: -1, inst: -1 });
    showFile();
    showInsts();
    explain();
  });
  $("heat").addEventListener("change", () => {
    state.heat = $("heat").value;
    source.redraw();
    sass.redraw();
  });
  $("only").addEventListener("change", () => {
    state.only = $("only").checked;
    showInsts();
    if (state.inst >= 0) sass.set(rowOfInst(state.inst), { centre: true });
  });
  $("why").addEventListener("keydown", e => {
    if (e.key === "Escape") ($("why").from ?? source.view).focus();
  });
  document.addEventListener("click", e => {
    const spot = e.target.closest("a[data-inst]");
    if (!spot) return;
    e.preventDefault();
    goTo(Number(spot.dataset.inst), true);
  });
  const longest = Math.max(N, ...files.map(([file]) => rowsOf(file).rows.length));
  $("panes").style.setProperty("--need", `${(longest + 2) * ROW}px`);
  showFile();
  showInsts();
  // The line that loses most is what a reader wants to see first; lines come in that order.
  if (code.lines.length) choose(0, -1, "start", "link");
}
