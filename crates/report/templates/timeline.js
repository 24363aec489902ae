// The lane timeline: a canvas over a wide empty box, so that the browser's own scroll bar moves through time.

const groups = data("data-tracks");

if (groups.length && $("timeline")) {
  const GUTTER = 52, STRIP = 15, TITLE = 24, GAP = 14;
  const box = $("tracks"), readout = $("step"), legend = $("legend");
  const EMPTY = 0, AWAY = 1, GUARDED = 2, RUNS = 3;
  const letter = n => n < 26 ? String.fromCharCode(65 + n) : `${letter(Math.floor(n / 26) - 1)}${letter(n % 26)}`;

  for (const track of groups.flat()) {
    const width = track.width, bits = text => {
      const low = parseInt(text.slice(-8), 16), high = parseInt(text.slice(0, -8) || "0", 16);
      return Array.from({ length: width }, (_, l) => (l < 32 ? low >>> l : high >>> (l - 32)) & 1);
    };
    track.existing = bits(track.lanes).reduce((a, b) => a + b, 0);
    track.at = varints(track.inst, track.steps);
    let before = 0;
    for (let i = 0; i < track.steps; i++) {
      const folded = track.at[i];
      before += folded % 2 ? -(folded + 1) / 2 : folded / 2;
      track.at[i] = before;
    }
    track.of = varints(track.state, track.steps);
    track.codes = new Uint8Array(track.states.length * width);
    track.states.forEach((s, i) => {
      const active = bits(s.active), runs = bits(s.executing);
      s.count = active.reduce((a, b) => a + b, 0);
      s.works = runs.reduce((a, b) => a + b, 0);
      s.away = s.others.map(([inst, lanes]) => [inst, bits(lanes)]);
      for (let l = 0; l < width; l++) {
        const away = s.away.some(([, lanes]) => lanes[l]);
        track.codes[i * width + l] = runs[l] ? RUNS : active[l] ? GUARDED : away ? AWAY : EMPTY;
      }
    });
    track.rowHeight = width > 32 ? 5 : 8;
    track.height = TITLE + STRIP + width * track.rowHeight;
  }

  let group = groups[0], hue = "path", scale = 1, fitted = true, here = { track: 0, step: 0 }, paint = {}, keys = [];
  const inner = el("div", { class: "inner" }), canvas = el("canvas", { role: "img" });
  inner.append(canvas);
  box.append(inner);
  Object.entries({ tabindex: 0, role: "slider", "aria-label": "Step of the timeline", "aria-describedby": "timeline-help", "aria-orientation": "horizontal", "aria-valuemin": 0 })
    .forEach(([name, value]) => box.setAttribute(name, value));

  /// What the steps of a group are coloured by, most frequent first; the first has the quiet colour by path.
  function key(track, step) {
    if (hue === "line") return String(code.line[track.at[step]]);
    if (hue === "count") return String(track.states[track.of[step]].count);
    return track.paths[track.states[track.of[step]].path].label;
  }
  function assign() {
    const steps = new Map(), first = new Map();
    for (const track of group) {
      track.keys = new Array(track.steps);
      for (let i = 0; i < track.steps; i++) {
        const k = track.keys[i] = key(track, i);
        steps.set(k, (steps.get(k) ?? 0) + 1);
        if (!first.has(k)) first.set(k, first.size);
      }
    }
    keys = [...steps].map(([name, n]) => ({ name, n }));
    if (hue === "path") {
      const root = group[0].paths[0].label;
      keys.sort((a, b) => (b.name === root) - (a.name === root) || first.get(a.name) - first.get(b.name));
    } else if (hue === "count") keys.sort((a, b) => b.name - a.name);
    else keys.sort((a, b) => b.n - a.n);
    const index = new Map(keys.map((k, i) => [k.name, i]));
    for (const track of group) track.hue = Int32Array.from(track.keys, k => index.get(k));
    for (const track of group) delete track.keys;
  }
  const width = () => group[0].width;
  function colour(index) {
    if (hue === "count") return mix(paint.hot, paint.cool, (Number(keys[index].name) - 1) / Math.max(1, width() - 1));
    if (hue === "line") return index < 8 ? paint[`p${index + 1}`] : paint.p0;
    return index === 0 ? paint.p0 : paint[`p${(index - 1) % 8 + 1}`];
  }
  function mix(a, b, share) {
    const [x, y] = [a, b].map(c => c.match(/[\d.]+/g).map(Number));
    return `rgb(${[0, 1, 2].map(i => Math.round(x[i] + (y[i] - x[i]) * share)).join(",")})`;
  }
  const named = index => hue === "count" ? plural(Number(keys[index].name), "lane") : hue === "line" ? lineName(code.lines[Number(keys[index].name)]) : keys[index].name;
  const mark = index => hue === "count" ? keys[index].name : letter(index);

  function listKeys() {
    legend.setAttribute("aria-label", { path: "Paths", line: "Source lines", count: "Lanes" }[hue]);
    legend.replaceChildren();
    keys.slice(0, 20).forEach((k, i) => {
      legend.append(el("li", {}, el("b", { style: `background:${colour(i)}` }, mark(i)), `${named(i)}: ${plural(k.n, "step")}`));
    });
    if (keys.length > 20) legend.append(el("li", { class: "soft" }, `and ${keys.length - 20} more`));
  }

  const longest = () => Math.max(1, ...group.map(t => t.steps));
  const room = () => Math.max(50, box.clientWidth - GUTTER - 8);
  const least = () => Math.min(24, room() / longest());
  function resize() {
    if (fitted) scale = least();
    scale = Math.min(40, Math.max(least(), scale));
    inner.style.width = fitted ? "100%" : `${GUTTER + 8 + longest() * scale}px`;
    const height = group.reduce((sum, t) => sum + t.height + GAP, 0);
    const ratio = devicePixelRatio || 1, w = box.clientWidth;
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${w}px`;
    canvas.style.height = `${height}px`;
    draw();
  }

  let asked = false;
  function draw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paintAll();
    });
  }
  function paintAll() {
    const c = canvas.getContext("2d"), ratio = devicePixelRatio || 1, w = canvas.width / ratio;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, canvas.height);
    let top = 0;
    group.forEach((track, index) => {
      track.top = top;
      paintTrack(c, track, index, top, w);
      top += track.height + GAP;
    });
  }

  function paintTrack(c, track, index, top, w) {
    const lanes = track.width, rh = track.rowHeight, y0 = top + TITLE + STRIP, from = box.scrollLeft;
    const x = step => GUTTER + step * scale - from;
    const first = Math.max(0, Math.floor(from / scale)), last = Math.min(track.steps, Math.ceil((from + w - GUTTER) / scale));
    c.font = "12.5px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.save();
    c.beginPath();
    c.rect(GUTTER, top, w - GUTTER, track.height + 1);
    c.clip();
    if (scale >= 1) paintSteps(c, track, first, last, x, y0);
    else paintColumns(c, track, from, w, y0);
    c.fillStyle = paint.line;
    for (let l = 0; l <= lanes; l += 8) c.fillRect(GUTTER, y0 + l * rh - 0.5, Math.min(w, x(track.steps)) - GUTTER, 1);
    paintStrip(c, track, first, last, x, y0 - STRIP);
    if (here.track === index) {
      c.strokeStyle = paint.focus;
      c.lineWidth = 2;
      c.strokeRect(x(here.step) - 1, y0 - STRIP - 1, Math.max(2, scale) + 2, lanes * rh + STRIP + 1);
    }
    c.restore();
    c.fillStyle = paint.ink;
    c.textAlign = "left";
    const when = track.when ? `${track.when === "before" ? "Before" : "After"} the fix: ` : "";
    const title = `${when}${summary(track)}`;
    c.fillText(title, 10, top + TITLE / 2);
    c.fillStyle = paint.soft;
    c.textAlign = "right";
    c.font = "11px system-ui, sans-serif";
    for (let l = 0; l < lanes; l += 8) c.fillText(`lane ${l}`, GUTTER - 6, y0 + l * rh + 6);
    // The ruler: steps at round distances.
    const apart = [1, 2, 5].flatMap(m => [0, 1, 2, 3, 4, 5].map(e => m * 10 ** e)).sort((a, b) => a - b).find(d => d * scale >= 70) ?? 1e6;
    c.textAlign = "center";
    const titled = c.measureText(title).width * 1.16 + 30;
    for (let s = Math.ceil(first / apart) * apart; s < last; s += apart) {
      const at = x(s) + scale / 2;
      if (at > Math.max(titled, GUTTER) && at < w - 16) c.fillText(count(s), at, top + TITLE / 2 + 3);
    }
  }

  function paintSteps(c, track, first, last, x, y0) {
    const lanes = track.width, rh = track.rowHeight;
    for (let l = 0; l < lanes; l++) {
      const y = y0 + l * rh;
      for (let s = first; s < last;) {
        const kind = track.codes[track.of[s] * lanes + l], tone = track.hue[s], start = s;
        do s++; while (s < last && track.codes[track.of[s] * lanes + l] === kind && (kind === AWAY || kind === EMPTY || track.hue[s] === tone));
        if (kind === EMPTY) continue;
        if (kind === AWAY) {
          c.fillStyle = paint.rim;
          c.fillRect(x(start), y + rh / 2 - 0.5, (s - start) * scale, 1);
          continue;
        }
        c.fillStyle = colour(tone);
        c.globalAlpha = kind === RUNS ? 1 : 0.38;
        const gap = scale > 6 ? 1 : 0;
        if (gap) for (let k = start; k < s; k++) c.fillRect(x(k), y, scale - gap, rh - 1);
        else c.fillRect(x(start), y, (s - start) * scale, rh - 1);
        c.globalAlpha = 1;
      }
    }
  }

  /// More than one step to a column: as strong as the share of them that the lane is active in.
  function paintColumns(c, track, from, w, y0) {
    const lanes = track.width, rh = track.rowHeight, active = new Float32Array(lanes), tone = new Int32Array(lanes), away = new Uint8Array(lanes);
    for (let px = 0; px < w - GUTTER; px++) {
      const a = Math.floor((from + px) / scale), b = Math.min(track.steps, Math.max(a + 1, Math.floor((from + px + 1) / scale)));
      if (a >= track.steps) break;
      active.fill(0);
      away.fill(0);
      for (let s = a; s < b; s++) {
        const at = track.of[s] * lanes;
        for (let l = 0; l < lanes; l++) {
          const kind = track.codes[at + l];
          if (kind >= GUARDED) {
            active[l] += kind === RUNS ? 1 : 0.38;
            tone[l] = track.hue[s];
          } else if (kind === AWAY) away[l] = 1;
        }
      }
      for (let l = 0; l < lanes; l++) {
        if (active[l]) {
          c.fillStyle = colour(tone[l]);
          c.globalAlpha = Math.max(0.12, active[l] / (b - a));
          c.fillRect(GUTTER + px, y0 + l * rh, 1, rh - 1);
        } else if (away[l]) {
          c.fillStyle = paint.rim;
          c.globalAlpha = 0.8;
          c.fillRect(GUTTER + px, y0 + l * rh + rh / 2 - 0.5, 1, 1);
        }
      }
    }
    c.globalAlpha = 1;
  }

  /// Which path runs, with its letter where there is room, and marks where lanes part and join.
  function paintStrip(c, track, first, last, x, y) {
    c.textAlign = "center";
    c.font = "600 10.5px ui-monospace, monospace";
    for (let s = first; s < last;) {
      const tone = track.hue[s], start = s;
      do s++; while (s < last && track.hue[s] === tone);
      const wide = (s - start) * scale;
      c.fillStyle = colour(tone);
      c.fillRect(x(start), y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), STRIP - 3);
      const text = mark(tone);
      if (wide > 7 * text.length + 4) {
        c.fillStyle = paint.card;
        c.fillText(text, Math.max(GUTTER + 6, x(start)) + (Math.min(x(s), GUTTER + room()) - Math.max(GUTTER + 6, x(start))) / 2, y + STRIP / 2 - 1);
      }
    }
  }

  const summary = t => `${t.label}: ${plural(t.steps, "issued instruction")}${t.cut ? " (later ones left out)" : ""}, ${percent(t.lost / (t.steps * t.existing))} of its lane slots empty`;
  const told = s => s.startsWith("split") || s.startsWith("join") || s.includes("lane");
  function words() {
    const track = group[here.track], s = here.step, state = track.states[track.of[s]], inst = track.at[s];
    const line = code.lines[code.line[inst]];
    const masks = `${state.count} of ${track.width} lanes active: 0x${state.active}` + (state.works === state.count ? "" : `; the guard holds in ${state.works}: 0x${state.executing}`);
    const others = state.away.map(([at, lanes]) => `${plural(lanes.reduce((a, b) => a + b, 0), "lane")} at pc ${hex(code.pc[at])}`).join(", ");
    return { track, s, inst, masks, others, event: state.event, path: track.paths[state.path].label, place: line && line.file !== null ? lineName(line) : "" };
  }
  function tell(live) {
    const at = words(), when = at.track.when ? `, ${at.track.when} the fix` : "";
    readout.replaceChildren(
      el("strong", {}, `Step ${count(at.s)} of ${count(at.track.steps)}${when}`), " ", at.place ? `${at.place}, ` : "", `pc ${hex(code.pc[at.inst])} `,
      el("code", {}, code.text[at.inst] ?? ""), el("br"), `${at.masks}. Path: ${at.path}.`, at.event ? ` Then: ${at.event}.` : "", at.others ? ` Elsewhere: ${at.others}.` : "");
    box.setAttribute("aria-valuenow", at.s);
    box.setAttribute("aria-valuemax", at.track.steps - 1);
    if (live) box.setAttribute("aria-valuetext", `Step ${at.s}${when}: ${at.place}, ${code.text[at.inst] ?? ""}. ${at.masks}. ${at.event}`);
    draw();
  }
  function move(step, track = here.track) {
    here = { track, step: Math.min(group[track].steps - 1, Math.max(0, step)) };
    const left = here.step * scale, right = left + scale;
    if (left < box.scrollLeft) box.scrollLeft = left - 20;
    else if (right > box.scrollLeft + room()) box.scrollLeft = right - room() + 20;
    tell(true);
  }
  function zoom(factor, anchor) {
    const focus = anchor ?? here.step * scale - box.scrollLeft, step = (box.scrollLeft + focus) / scale;
    fitted = factor === 0;
    if (!fitted) scale = Math.min(40, Math.max(least(), scale * factor));
    if (scale <= least() * 1.001) fitted = true;
    resize();
    box.scrollLeft = step * scale - focus;
  }
  function find(direction) {
    const track = group[here.track];
    for (let s = here.step + direction; s >= 0 && s < track.steps; s += direction) {
      if (told(track.states[track.of[s]].event)) return move(s);
    }
  }
  function spot(e) {
    const area = canvas.getBoundingClientRect(), y = e.clientY - area.top, px = e.clientX - area.left - GUTTER + box.scrollLeft;
    const track = group.findIndex(t => y >= t.top && y < t.top + t.height + GAP), step = Math.floor(px / scale);
    return track >= 0 && px >= 0 && step < group[track].steps ? { track, step } : null;
  }

  box.addEventListener("scroll", draw, { passive: true });
  box.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const far = e.shiftKey ? 10 : 1, end = group[here.track].steps;
    const acts = {
      ArrowRight: () => move(here.step + far), ArrowLeft: () => move(here.step - far), Home: () => move(0), End: () => move(end),
      PageDown: () => move(here.step + Math.ceil(room() / scale)), PageUp: () => move(here.step - Math.ceil(room() / scale)),
      ArrowDown: () => move(here.step, Math.min(group.length - 1, here.track + 1)), ArrowUp: () => move(here.step, Math.max(0, here.track - 1)),
      n: () => find(1), p: () => find(-1), "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: () => zoom(0),
      Enter: () => goTo(group[here.track].at[here.step], true),
    };
    const act = acts[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
  canvas.addEventListener("pointermove", e => {
    const at = spot(e);
    if (!at || (at.track === here.track && at.step === here.step)) return;
    here = at;
    tell(false);
  });
  canvas.addEventListener("click", e => {
    const at = spot(e);
    if (!at) return;
    move(at.step, at.track);
    choose(code.line[group[at.track].at[at.step]], group[at.track].at[at.step], "link", "link");
  });
  canvas.addEventListener("dblclick", () => goTo(group[here.track].at[here.step], true));
  box.addEventListener("wheel", e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 200), e.clientX - canvas.getBoundingClientRect().left - GUTTER);
  }, { passive: false });
  $("zoom-in").addEventListener("click", () => zoom(1.6));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  $("zoom-fit").addEventListener("click", () => zoom(0));
  $("hue").addEventListener("change", () => {
    hue = $("hue").value;
    refresh();
  });
  groups.forEach((g, i) => $("warp").append(el("option", { value: i }, g[0].label)));
  if (groups.length < 2) $("warp").parentNode.hidden = true;
  $("warp").addEventListener("change", () => {
    group = groups[Number($("warp").value)];
    here = { track: 0, step: 0 };
    fitted = true;
    refresh();
  });
  $("timeline-tools").hidden = false;

  /// The timeline in rows for those who cannot see it: a row for each stretch of steps by the same lanes on one path.
  const stretches = $("stretches"), ROWS = 400;
  function list() {
    const box = stretches.querySelector("div");
    if (!stretches.open) return;
    const body = el("tbody");
    let left = 0;
    for (const track of group) {
      for (let s = 0; s < track.steps;) {
        const start = s, state = track.states[track.of[s]], lines = new Set();
        do {
          const line = code.lines[code.line[track.at[s]]];
          if (line) lines.add(lineName(line));
          s++;
        } while (s < track.steps && track.states[track.of[s]].path === state.path && track.states[track.of[s]].active === state.active);
        if (body.childElementCount >= ROWS) {
          left++;
          continue;
        }
        const event = track.states[track.of[s - 1]].event, shown = [...lines].slice(0, 4).join(", ") + (lines.size > 4 ? ` and ${lines.size - 4} more` : "");
        body.append(el("tr", {}, el("th", { scope: "row" }, `${track.when ? `${track.when}, ` : ""}${count(start)} to ${count(s - 1)}`),
          el("td", { class: "num" }, String(state.count)), el("td", {}, el("code", {}, `0x${state.active}`)), el("td", {}, track.paths[state.path].label), el("td", {}, shown), el("td", {}, event)));
      }
    }
    const head = el("tr");
    for (const name of ["Steps", "Lanes", "Mask", "Path", "Lines", "Then"]) head.append(el("th", { scope: "col", class: name === "Lanes" ? "num" : null }, name));
    const caption = `Stretches of steps by the same lanes${left ? `; ${count(left)} more are not shown` : ""}`;
    box.replaceChildren(el("table", {}, el("caption", {}, caption), el("thead", {}, head), body));
  }
  stretches.hidden = false;
  stretches.addEventListener("toggle", list);

  function refresh() {
    paint = colours(["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "ink", "soft", "line", "rim", "card", "focus", "hot", "cool"]);
    assign();
    listKeys();
    canvas.setAttribute("aria-label", group.map(t => `${t.when ? `${t.when} the fix, ` : ""}${summary(t)}, ${plural(t.paths.length, "path")}`).join("; "));
    resize();
    tell(false);
    list();
  }
  themed.push(refresh);
  new ResizeObserver(resize).observe(box);
  refresh();
}
