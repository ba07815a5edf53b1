"use strict";
// Lists, filters and links of a report. All data of the capture is text: nothing of it is ever taken for markup, except
// the sections that were made and escaped together with this page.
(() => {
  const $ = (id) => document.getElementById(id);
  const unpacked = new Map();

  function data(name) {
    if (!unpacked.has(name)) unpacked.set(name, unpack($(`data-${name}`)));
    return unpacked.get(name);
  }

  async function unpack(script) {
    if (!script) return null;
    const text = atob(script.textContent);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function element(tag, text, kind) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // A path may be broken after a slash, a query between its parameters.
  function breakable(made, text) {
    text.split(/(?<=[/&=](?![/&=\s]))/).forEach((part, at) => made.append(...(at ? [element("wbr")] : []), part));
    return made;
  }

  function link(text, target) {
    const made = element("a", text);
    made.href = `#${target}`;
    return made;
  }

  // -- filters: the same words as --filter ---------------------------------------------------------------------

  const RANKS = { notice: 1, warning: 2, error: 3 };
  const UNITS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
  const OUTCOMES = ["complete", "failed", "waiting", "refused", "unfinished"];
  const PHASES = ["certificates", "node", "plugins", "catalog", "files", "report", "other", "handshake", "gap"];

  class FilterError extends Error {}

  function terms(text) {
    const found = [];
    let rest = text.trim();
    while (rest) {
      let at = 0;
      const negated = /^[-!]\S/.test(rest);
      if (negated) at = 1;
      const key = /^([A-Za-z_]+):(?!:)/.exec(rest.slice(at));
      if (key) at += key[0].length;
      const value = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^"'\s]\S*|))(?=\s|$)/s.exec(rest.slice(at));
      if (!value) throw new FilterError(`The filter is not valid from '${rest}' on.`);
      const word = value[1] !== undefined ? value[1].replace(/\\(.)/gs, "$1") : value[2] ?? value[3];
      if (!word) throw new FilterError(`'${rest}' has no value.`);
      found.push({ negated, key: key ? key[1].toLowerCase() : null, value: word });
      rest = rest.slice(at + value[0].length).trim();
    }
    return found;
  }

  function glob(pattern) {
    // The pattern is the reader's own; it is matched without backtracking into what it matched.
    const parts = [];
    for (let at = 0; at < pattern.length; at++) {
      const char = pattern[at];
      const close = char === "[" ? pattern.indexOf("]", at + 2) : -1;
      if (char === "*") { if (parts.at(-1) !== "*") parts.push("*"); }
      else if (char === "?") parts.push({ test: () => true });
      else if (close > 0) {
        let inner = pattern.slice(at + 1, close).replace(/[\\\]]/g, "\\$&");
        if (inner[0] === "!") inner = `^${inner.slice(1)}`; else if (inner[0] === "^") inner = `\\${inner}`;
        try { parts.push(new RegExp(`^[${inner}]$`, "iu")); } catch { throw new FilterError(`'${pattern}' is not a pattern.`); }
        at = close;
      } else { const low = char.toLowerCase(); parts.push({ test: (other) => other.toLowerCase() === low }); }
    }
    return (text) => {
      if (text === null || text === undefined || text === "") return false;
      let at = 0, part = 0, star = -1, mark = 0;
      while (at < text.length) {
        if (part < parts.length && parts[part] !== "*" && parts[part].test(text[at])) { at++; part++; }
        else if (parts[part] === "*") { star = part++; mark = at; }
        else if (star >= 0) { part = star + 1; at = ++mark; }
        else return false;
      }
      while (parts[part] === "*") part++;
      return part === parts.length;
    };
  }

  function number(value, read) {
    const compared = /^(>=|<=|[<>=])(.*)$/s.exec(value);
    if (compared) {
      const limit = read(compared[2]);
      return { ">=": (n) => n >= limit, "<=": (n) => n <= limit, ">": (n) => n > limit, "<": (n) => n < limit, "=": (n) => n === limit }[compared[1]];
    }
    const [low, high] = value.includes("-") ? value.split(/-(.*)/s) : [value, value];
    const first = read(low), last = read(high);
    if (first > last) throw new FilterError("The range ends before it begins.");
    return (n) => first <= n && n <= last;
  }

  function plain(text) {
    if (!/^[0-9]+(\.[0-9]+)?$/.test(text)) throw new FilterError(`'${text}' is not a number.`);
    return Number(text);
  }

  function bytes(text) {
    const found = /^([0-9]+(?:\.[0-9]+)?)([kmg]?)b?$/i.exec(text);
    if (!found) throw new FilterError(`'${text}' is not a size.`);
    return Number(found[1]) * { "": 1, k: 1e3, m: 1e6, g: 1e9 }[found[2].toLowerCase()];
  }

  function moment(text, latest) {
    const back = /^([0-9]{1,9})([smhdw])$/.exec(text);
    if (back) return latest === null ? NaN : latest - Number(back[1]) * UNITS[back[2]];
    const found = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text);
    const time = found ? Date.parse(text.replace(" ", "T") + (!found[1] || found[4] ? "" : "Z")) / 1000 : NaN;
    if (Number.isNaN(time)) throw new FilterError(`'${text}' is not a time: 2026-11-21T07:00, or 10m.`);
    return time;
  }

  function oneOf(value, known) {
    if (!known.includes(value.toLowerCase())) throw new FilterError(`'${value}' is none of ${known.join(", ")}.`);
    return value.toLowerCase();
  }

  const version = (value) => {
    const found = /^(>=|<=|>|<|=)?([0-9]{1,9}(?:\.[0-9]{1,9})*)$/.exec(value);
    if (!found) return (run) => glob(value)(run.version);
    const wanted = found[2].split(".").map(Number);
    return (run) => {
      const known = /^[0-9]{1,9}(\.[0-9]{1,9})*/.exec(run.version);
      if (!known) return false;
      const parts = known[0].split(".").map(Number).slice(0, wanted.length);
      let order = 0;
      for (let at = 0; at < wanted.length && !order; at++) order = at < parts.length ? parts[at] - wanted[at] : -1;
      return { ">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0, "=": order === 0 }[found[1] || "="];
    };
  };

  const exchange = (holds) => ({ record: (r) => r.kind === "exchange" && holds(r) });
  const ofRun = (holds) => ({ record: (r) => r.owner !== null && holds(r.owner), run: holds });
  const ofFindings = (holds) => ({ record: (r) => r.signs.some(holds), run: (run) => run.findings.some(holds) });

  // Each makes the tests of a term for a record and for a run; without one for a run, only records have the property.
  const KEYS = {
    outcome: (value) => { const wanted = value.split(",").map((one) => oneOf(one, OUTCOMES)); return ofRun((run) => wanted.includes(run.outcome) || wanted.includes(run.ending)); },
    agent: (value) => { const fits = glob(value); return {
      record: (r) => (r.owner !== null && fits(r.owner.certname)) || fits(r.certname) || fits(r.address || (r.owner ? r.owner.address : "")),
      run: (run) => fits(run.certname) || fits(run.address) }; },
    rule: (value) => { const wanted = value.toLowerCase() === "any" ? "" : value.toUpperCase(); return ofFindings((sign) => sign.startsWith(wanted)); },
    severity: (value) => { const least = RANKS[oneOf(value, Object.keys(RANKS))]; return ofFindings((sign) => RANKS[sign.split(":")[1]] >= least); },
    status: (value) => {
      if (value.toLowerCase() === "none") return exchange((r) => !r.status);
      const fits = number(/^[1-9]xx$/i.test(value) ? `${value[0]}00-${value[0]}99` : value, plain);
      return exchange((r) => r.status > 0 && fits(r.status)); },
    phase: (value) => { const wanted = oneOf(value, PHASES); return { record: (r) => r.phase === wanted || r.kind === wanted }; },
    path: (value) => {
      const path = (r) => r.target.split("?", 1)[0];
      if (/[*?[]/.test(value)) { const fits = glob(value); return exchange((r) => fits(path(r))); }
      const part = value.toLowerCase(); return exchange((r) => path(r).toLowerCase().includes(part)); },
    text: (value) => { const wanted = [value, JSON.stringify(value).slice(1, -1)].map((one) => one.toLowerCase());
      return { reads: true, record: (r) => { const all = r.all(); return wanted.some((one) => all.includes(one)); } }; },
    since: (value, latest) => { const at = moment(value, latest); return { record: (r) => !(r.time < at), run: (run) => !(run.ended < at) }; },
    until: (value, latest) => { const at = moment(value, latest); return { record: (r) => !(r.time > at), run: (run) => !(run.started > at) }; },
    env: (value) => { const fits = glob(value); return { record: (r) => fits(r.env || (r.owner ? r.owner.env[0] : "")), run: (run) => run.env.some(fits) }; },
    version: (value) => ofRun(version(value)),
    ms: (value) => { const fits = number(value, plain); return { record: exchange((r) => fits(Math.round(r.us / 1000))).record, run: (run) => fits(run.ms) }; },
    size: (value) => { const fits = number(value, bytes); return { record: exchange((r) => fits(r.sent + r.received)).record, run: (run) => fits(run.size) }; },
    run: (value) => { const fits = number(value, plain); return ofRun((run) => fits(run.number)); },
    endpoint: (value) => { const fits = glob(value); return { record: (r) => fits(r.endpoint) }; },
    method: (value) => exchange((r) => r.method.toUpperCase() === value.toUpperCase()),
  };

  function parse(text, latest) {
    const all = terms(text).map(({ negated, key, value }) => {
      if (key === null) {
        const word = value.toLowerCase();
        return { negated, record: (r) => r.line().toLowerCase().includes(word), run: (run) => run.words.toLowerCase().includes(word) };
      }
      if (!Object.hasOwn(KEYS, key)) throw new FilterError(`A filter has no key '${key}': there are ${Object.keys(KEYS).join(", ")}.`);
      return { negated, ...KEYS[key](value, latest) };
    });
    const aboutRuns = all.filter((term) => term.run), aboutRecords = all.filter((term) => !term.run);
    const forbids = aboutRecords.length > 0 && aboutRecords.every((term) => term.negated);
    return {
      reads: all.some((term) => term.reads),
      aboutRecords: aboutRecords.length > 0,
      record: (r) => all.every((term) => term.record(r) !== term.negated),
      marks: (r) => (forbids ? aboutRecords.some((term) => term.record(r)) : aboutRecords.every((term) => term.record(r) !== term.negated)),
      run: (run, marked) => aboutRuns.every((term) => term.run(run) !== term.negated) && (!aboutRecords.length || marked !== forbids),
    };
  }

  // -- runs and records ----------------------------------------------------------------------------------------

  let runs = null, records = null, messages = null;

  async function loadRuns() {
    if (runs) return runs;
    const found = await data("runs");
    runs = { ...found, byNumber: new Map(found.runs.map((run) => [run.number, run])) };
    return runs;
  }

  async function loadRecords() {
    if (records) return records;
    const [known, { names, columns }] = await Promise.all([loadRuns(), data("records")]);
    const many = (columns.seq || []).length;
    const seqs = new Float64Array(many), times = new Float64Array(many);
    for (let at = 0, seq = 0, time = 0; at < many; at++) {
      seqs[at] = seq += columns.seq[at];
      times[at] = (time += columns.time[at]) / 1000;
    }
    const places = new Map();
    for (let at = 0; at < many; at++) places.set(seqs[at], at);
    const named = (column, at) => names[columns[column][at]] ?? "";
    // One object with getters serves for all records: a hundred thousand need no object each.
    const cursor = {
      at: 0,
      get seq() { return seqs[this.at]; }, get time() { return times[this.at]; }, get us() { return columns.us[this.at]; },
      get kind() { return named("kind", this.at); }, get phase() { return named("phase", this.at); },
      get run() { return columns.run[this.at]; }, get owner() { return known.byNumber.get(columns.run[this.at]) ?? null; },
      get certname() { return named("certname", this.at); }, get address() { return named("address", this.at); },
      get endpoint() { return named("endpoint", this.at); }, get env() { return named("env", this.at); },
      get method() { return named("method", this.at); }, get target() { return columns.target[this.at]; },
      get status() { return columns.status[this.at]; }, get failed() { return columns.failed[this.at] === 1; }, get sent() { return columns.sent[this.at]; },
      get received() { return columns.received[this.at]; }, get reason() { return named("reason", this.at); },
      get identity() { return named("identity", this.at); },
      get signs() { const all = named("signs", this.at); return all ? all.split(" ") : []; },
      cells() {
        const status = this.kind === "exchange" ? (this.status ? String(this.status) : "none") : this.kind;
        const what = this.kind === "exchange" ? `${this.target}${this.status ? "" : ` (${this.reason})`}` : this.reason;
        return [String(this.seq), stamp(this.time), this.owner ? this.owner.certname || this.owner.address : this.certname || this.address,
          this.method, what, status, took(this.us), this.signs.map((sign) => sign.split(":")[0]).join(" ")];
      },
      line() { return [...this.cells(), this.phase].join(" "); },
      all() {
        const parts = [this.target, unquoted(this.target), this.reason];
        const found = messages && messages.of(this.seq);
        for (const message of found || []) if (message) parts.push(...(message.headers || [message]).map((pair) => (Array.isArray(pair) ? pair.join(": ") : String(pair))), message.text || "");
        return parts.join("\n").toLowerCase();
      },
    };
    records = { many, places, cursor, seqs };
    return records;
  }

  async function loadMessages() {
    if (messages) return messages;
    const index = await data("messages");
    if (!index) return null;
    const heads = await Promise.all(index.records.map((_, at) => data(`records-${at}`)));
    const bodies = await Promise.all(index.bodies.map((_, at) => data(`bodies-${at}`)));
    messages = { of: (seq) => built(seq, heads[before(index.records, seq)], (place) => bodies[before(index.bodies, place)][place - index.bodies[before(index.bodies, place)]]) };
    return messages;
  }

  async function messagesOf(seq) {
    const index = await data("messages");
    if (!index || !index.records.length) return null;
    const block = before(index.records, seq);
    const heads = await data(`records-${block}`);
    const places = ((heads.records[seq]) || []).slice(0, 2).filter(Boolean).map((message) => message[1]).filter((place) => place >= 0);
    const bodies = new Map();
    for (const place of places) {
      const at = before(index.bodies, place);
      bodies.set(place, (await data(`bodies-${at}`))[place - index.bodies[at]]);
    }
    return built(seq, heads, (place) => bodies.get(place));
  }

  function built(seq, heads, body) {
    return ((heads && heads.records[seq]) || []).map((message) => {
      if (!message || typeof message[0] === "string") return message;
      const [headers, place, size, lost] = message;
      const found = place < 0 ? "" : body(place);
      return { headers: heads.headers[headers], text: typeof found === "string" ? found : "", binary: typeof found === "object" ? found.base64 : "", size, lost };
    });
  }

  function before(starts, value) {
    let low = 0, high = starts.length;
    while (low < high) { const middle = (low + high) >> 1; if (starts[middle] <= value) low = middle + 1; else high = middle; }
    return Math.max(0, low - 1);
  }

  const stamp = (time) => (Number.isFinite(time) && Math.abs(time) < 8e12 ? new Date(time * 1000).toISOString().slice(0, 23).replace("T", " ") : "");
  const took = (us) => (us < 1e6 ? `${Math.round(us / 1000)} ms` : us < 12e7 ? `${(us / 1e6).toFixed(1)} s` : `${Math.floor(us / 6e7)} min ${Math.floor((us / 1e6) % 60)} s`);
  const unquoted = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  // Captured text may contain controls, what turns the direction of writing, and what nobody sees.
  const cleaned = (text) => text.replace(/(?![ \t\n])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{16fe4}\u{1d159}]/gu, (char) => `\\x${char.codePointAt(0).toString(16).padStart(2, "0")}`);

  // -- a list that draws only what is visible --------------------------------------------------------------------

  const HEIGHT = 30, BEYOND = 12, TALLEST = 8_000_000;
  const ORDER = new Intl.Collator("en", { numeric: true });

  class List {
    // ``first`` is the column of the order in which rows come, and whether it descends.
    constructor(host, kind, heads, draw, open, key, first) {
      this.first = first; this.note = $(`${kind}-order`); this.titles = heads;
      this.draw = draw; this.open = open; this.key = key; this.found = []; this.rows = []; this.chosen = -1; this.drawn = new Map();
      this.column = -1; this.descends = false;
      this.root = element("div", undefined, `list ${kind}`);
      this.root.setAttribute("role", "table");
      this.root.setAttribute("aria-label", kind === "runs" ? "Runs" : "Records");
      const top = element("div"); top.setAttribute("role", "rowgroup");
      const head = element("div", undefined, "row head"); head.setAttribute("role", "row");
      this.heads = heads.map((title, column) => {
        const cell = element("span"), button = element("button", title);
        button.type = "button"; button.addEventListener("click", () => this.sortBy(column));
        cell.setAttribute("role", "columnheader"); cell.append(button); head.append(cell);
        return cell;
      });
      top.append(head);
      this.view = element("div", undefined, "view"); this.view.tabIndex = 0; this.view.setAttribute("role", "rowgroup");
      this.view.setAttribute("aria-label", "Arrows choose, Enter opens");
      this.space = element("div"); this.space.setAttribute("role", "presentation");
      this.view.append(this.space);
      this.root.append(top, this.view);
      host.replaceChildren(this.root);
      this.mark();
      this.view.addEventListener("scroll", () => requestAnimationFrame(() => this.paint()), { passive: true });
      this.view.addEventListener("keydown", (event) => this.press(event));
      this.view.addEventListener("click", (event) => {
        const row = event.target.closest(".row");
        if (row && !event.target.closest("a")) this.choose(Number(row.dataset.at), true);
      });
    }

    // By a column; again: the other way round; once more: in the first order.
    sortBy(column) {
      if (this.column !== column) { this.column = column; this.descends = false; }
      else if (!this.descends) this.descends = true;
      else this.column = -1;
      this.mark();
      this.show(this.found);
    }

    mark() {
      const [sorted, descends] = this.column < 0 ? this.first : [this.column, this.descends];
      this.heads.forEach((cell, at) => { if (at === sorted) cell.setAttribute("aria-sort", descends ? "descending" : "ascending"); else cell.removeAttribute("aria-sort"); });
      if (!this.note) return;
      this.unsorted ??= this.note.textContent;
      this.note.textContent = this.column < 0 ? this.unsorted : `by ${this.titles[sorted]}, ${descends ? "descending" : "ascending"}`;
    }

    sorted(rows) {
      if (this.column < 0) return rows;
      const keyed = rows.map((row) => [this.key(row, this.column), row]), order = this.descends ? -1 : 1;
      const compare = (one, other) => (typeof one === "number" ? one - other : ORDER.compare(one, other));
      return keyed.sort(([one], [other]) => order * compare(one, other)).map(([, row]) => row);
    }

    show(rows) {
      this.found = rows; this.rows = this.sorted(rows); this.chosen = -1;
      this.root.setAttribute("aria-rowcount", String(rows.length + 1));
      // A browser cannot scroll further than some millions of pixels: then one pixel stands for more.
      this.whole = Math.min(rows.length * HEIGHT, TALLEST);
      this.space.style.height = `${this.whole}px`;
      this.view.style.height = `${Math.min(this.whole + 2, Math.max(240, innerHeight * 0.6))}px`;
      this.view.scrollTop = 0;
      this.clear(); this.paint();
    }

    clear() { for (const row of this.drawn.values()) row.remove(); this.drawn.clear(); }

    paint() {
      const tall = this.view.clientHeight, room = this.rows.length * HEIGHT;
      const ratio = this.whole > tall ? (room - tall) / (this.whole - tall) : 1;
      const scrolled = this.view.scrollTop * Math.max(1, ratio), shift = this.view.scrollTop - scrolled;
      const first = Math.max(0, Math.floor(scrolled / HEIGHT) - BEYOND), last = Math.min(this.rows.length, Math.ceil((scrolled + tall) / HEIGHT) + BEYOND);
      for (const [at, row] of this.drawn) if (at < first || at >= last) { row.remove(); this.drawn.delete(at); }
      for (let at = first; at < last; at++) {
        let row = this.drawn.get(at);
        if (!row) {
          row = element("div", undefined, "row"); row.dataset.at = String(at);
          row.setAttribute("role", "row"); row.setAttribute("aria-rowindex", String(at + 2));
          this.draw(this.rows[at]).forEach((content) => {
            const cell = typeof content === "string" ? element("span", content) : content;
            if (typeof content === "string") cell.title = content;
            const box = cell.tagName === "A" ? element("span") : cell;
            if (box !== cell) box.append(cell);
            box.setAttribute("role", "cell"); row.append(box);
          });
          this.view.append(row); this.drawn.set(at, row);
        }
        row.style.top = `${at * HEIGHT + shift}px`;
        row.classList.toggle("chosen", at === this.chosen);
        if (at === this.chosen) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
      }
    }

    choose(at, open) {
      this.chosen = Math.max(0, Math.min(this.rows.length - 1, at));
      const tall = this.view.clientHeight, room = this.rows.length * HEIGHT;
      const ratio = this.whole > tall ? Math.max(1, (room - tall) / (this.whole - tall)) : 1;
      const top = this.chosen * HEIGHT, now = this.view.scrollTop * ratio;
      if (top < now) this.view.scrollTop = top / ratio;
      else if (top + HEIGHT > now + tall) this.view.scrollTop = (top + HEIGHT - tall) / ratio;
      this.paint();
      if (open && this.rows.length) this.open(this.rows[this.chosen]);
    }

    press(event) {
      const page = Math.max(1, Math.floor(this.view.clientHeight / HEIGHT) - 1);
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (event.key in steps) { event.preventDefault(); this.choose(this.chosen + steps[event.key], false); }
      else if (event.key === "Enter" && this.chosen >= 0) this.choose(this.chosen, true);
    }
  }

  let runList = null, recordList = null, turn = 0;

  async function filtered(which) {
    const input = $(`filter-${which}`), output = document.querySelector(`output[for="filter-${which}"]`);
    const mine = ++turn;
    try {
      const known = await loadRuns();
      const chosen = parse(input.value, known.latest);
      if (chosen.reads && $("data-messages")) { output.textContent = "searching …"; await loadMessages(); }
      let rows = known.runs;
      if (which === "records" || chosen.aboutRecords) {
        const all = await loadRecords(), cursor = all.cursor;
        if (which === "records") {
          rows = [];
          for (let at = 0; at < all.many; at++) { cursor.at = at; if (chosen.record(cursor)) rows.push(at); }
        } else {
          const marked = new Set();
          for (let at = 0; at < all.many; at++) { cursor.at = at; if (chosen.marks(cursor)) marked.add(cursor.run); }
          rows = known.runs.filter((run) => chosen.run(run, marked.has(run.number)));
        }
      } else rows = known.runs.filter((run) => chosen.run(run, false));
      if (mine !== turn && which !== "records" && input.value !== $(`filter-${which}`).value) return;
      const total = which === "records" ? records.many : known.runs.length;
      output.textContent = `${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")}${chosen.reads && !$("data-messages") ? "; without bodies only paths are searched" : ""}`;
      output.className = ""; input.removeAttribute("aria-invalid");
      (which === "records" ? recordList : runList).show(rows);
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      output.textContent = error.message; output.className = "error"; input.setAttribute("aria-invalid", "true");
    }
  }

  // -- what a link leads to ----------------------------------------------------------------------------------------

  const SKETCHED = 500;

  async function section(number) {
    const found = $(`run-${number}`);
    if (found) return found;
    const known = await loadRuns(), run = known.byNumber.get(number), host = $("run");
    if (!run) return null;
    let made;
    if (number in known.places) {
      const template = element("template");
      template.innerHTML = (await data(`sections-${known.places[number]}`))[number];
      made = template.content.querySelector("article");
      prepare(made);
    } else {
      made = sketch(run, await loadRecords());
    }
    if ((await loadRecords()).many) { const all = element("p"); all.append(link(`All records of run ${number}`, `records?run:${number}`)); made.append(all); }
    host.prepend(made);
    return made;
  }

  // A run without a section of its own, drawn from what the lists know of it.
  function sketch(run, all) {
    const made = element("article", undefined, "run"), title = element("h3", `Run ${run.number} of ${run.certname || run.address} `);
    made.id = `run-${run.number}`; made.tabIndex = -1;
    title.append(element("span", run.ending, `outcome ${run.ending}`));
    const cells = element("dl", undefined, "cells");
    for (const [name, value] of [["began", `${stamp(run.started).slice(0, 19)} UTC`], ["took", took(run.ms * 1000)], ["agent", run.version], ["environment", run.env[0]], ["address", run.address]]) {
      if (value) lines(cells.appendChild(element("div")), [[name, value]]);
    }
    made.append(title, cells);
    if (run.findings.length) {
      const found = made.appendChild(element("p", "Findings "));
      for (const sign of run.findings) found.append(signed(sign), " ");
    }
    const host = element("div", undefined, "scroll stacks"), table = host.appendChild(element("table", undefined, "waterfall")), cursor = all.cursor;
    host.tabIndex = 0; host.setAttribute("role", "group"); host.setAttribute("aria-label", "Waterfall");
    const head = table.appendChild(element("thead")).appendChild(element("tr"));
    for (const name of ["record", "at", "what", "status", "time"]) head.append(cell("th", name, "", "col"));
    head.append(cell("th", "the agent's exchange", "axis", "col"));
    const body = table.appendChild(element("tbody")), own = [];
    let begin = Infinity, end = -Infinity, phase = null;
    for (cursor.at = 0; cursor.at < all.many; cursor.at++) {
      if (cursor.run !== run.number) continue;
      own.push(cursor.at);
      begin = Math.min(begin, cursor.time); end = Math.max(end, cursor.time + cursor.us / 1e6);
    }
    for (cursor.at of own.slice(0, SKETCHED)) {
      if (cursor.phase !== phase) { phase = cursor.phase; const row = body.appendChild(element("tr", undefined, "phase")).appendChild(cell("th", phase, "", "rowgroup")); row.colSpan = 6; }
      const [seq, , , method, what, status, time] = cursor.cells();
      const row = body.appendChild(element("tr", undefined, cursor.failed ? "bad" : "")), name = breakable(element("td", undefined, "what"), `${method} ${what.split("?", 1)[0]} `);
      for (const sign of cursor.signs) name.append(signed(sign), " ");
      row.append(element("td", undefined, "number"), element("td", (cursor.time - begin).toFixed(3), "number"), name, element("td", status), element("td", time, "number"), bar((cursor.time - begin) / (end - begin || 1), cursor.us / 1e6 / (end - begin || 1)));
      row.firstChild.append(link(seq, `record-${seq}`));
    }
    const more = own.length > SKETCHED ? `… ${(own.length - SKETCHED).toLocaleString("en")} more in the list of records. ` : "";
    made.append(element("h4", "Traffic"), host, element("p", `${more}Its documents are not in this page: puppet-inspector report CAPTURE --run ${run.number} makes one of it.`, "aside"));
    return made;
  }

  function cell(tag, text, kind, scope) {
    const made = element(tag, text, kind); made.scope = scope;
    return made;
  }

  function signed(sign) {
    const [rule, severity] = sign.split(":"), made = link(rule, `rule-${rule}`);
    made.className = `sign ${severity}`;
    return made;
  }

  function bar(from, width) {
    const made = element("td", undefined, "axis"), names = "http://www.w3.org/2000/svg";
    const svg = made.appendChild(document.createElementNS(names, "svg")), rect = svg.appendChild(document.createElementNS(names, "rect"));
    for (const [name, value] of [["viewBox", "0 0 1000 12"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    for (const [name, value] of [["class", "whole"], ["x", from * 1000], ["width", Math.max(2, width * 1000)], ["y", 2], ["height", 8]]) rect.setAttribute(name, value);
    return made;
  }

  function lines(list, rows) {
    for (const [name, value] of rows) if (value) list.append(element("dt", name), breakable(element("dd"), value));
    return list;
  }

  async function record(seq) {
    const all = await loadRecords(), at = all.places.get(seq), host = $("record");
    if (at === undefined) return null;
    const found = await messagesOf(seq);
    const cursor = all.cursor; cursor.at = at;
    const made = element("article");
    made.append(breakable(element("h3"), `Record ${seq}: ${cursor.kind === "exchange" ? `${cursor.method} ${cursor.target.split("?", 1)[0]}` : cursor.reason}`));
    lines(made.appendChild(element("dl")), [
      ["began (UTC)", stamp(cursor.time)], ["took", took(cursor.us)], ["phase", cursor.phase], ["endpoint", cursor.endpoint],
      ["status", cursor.kind === "exchange" ? (cursor.status ? String(cursor.status) : "no answer") : cursor.kind], ["reason", cursor.reason],
      ["agent", cursor.certname], ["address", cursor.address], ["identity", cursor.identity], ["environment", cursor.env],
      ["bodies", cursor.kind === "exchange" ? `${cursor.sent.toLocaleString("en")} bytes sent, ${cursor.received.toLocaleString("en")} received` : ""], ["query", cursor.target.split(/\?(.*)/s)[1] || ""],
    ]);
    const links = element("p");
    if (cursor.run) links.append(link(`Run ${cursor.run}`, `run-${cursor.run}`), " ");
    for (const sign of cursor.signs) links.append(link(sign.replace(":", " "), `rule-${sign.split(":")[0]}`), " ");
    made.append(links);
    (found || []).forEach((message, place) => {
      if (!message) return;
      if (Array.isArray(message)) { made.append(element("h4", "Verification"), element("pre", message.join("\n"))); return; }
      made.append(element("h4", place ? "Response" : "Request"));
      const pre = made.appendChild(element("pre", message.headers.map((pair) => pair.join(": ")).join("\n"))); pre.tabIndex = 0;
      if (message.text || message.binary) {
        const form = message.headers.some(([name, value]) => /^content-type$/i.test(name) && /x-www-form-urlencoded/i.test(value));
        const body = element("pre", message.text ? (form ? fields(message.text) : pretty(message.text)) : message.binary); body.tabIndex = 0;
        made.append(element("p", message.text ? "Body" : "Body, not text, as base64", "aside"), body);
      }
      if (message.lost) made.append(element("p", `${message.lost.toLocaleString("en")} bytes were not recorded`, "aside"));
    });
    host.replaceChildren(made);
    return host;
  }

  // A form has a line per field; facts in it are encoded twice.
  function fields(text) {
    return text.split("&").map((field) => {
      const [name, value] = field.replace(/\+/g, " ").split(/=(.*)/s);
      const once = unquoted(value || ""), again = /^%7B/i.test(once) ? unquoted(once) : once;
      return `${cleaned(unquoted(name))} = ${pretty(again)}`;
    }).join("\n");
  }

  function pretty(text) {
    if (/^\s*[[{]/.test(text) && text.length < 2e6) { try { return cleaned(JSON.stringify(JSON.parse(text), null, 2)); } catch { /* it is not JSON */ } }
    return cleaned(text);
  }

  async function go() {
    const hash = unquoted(location.hash.slice(1));
    const list = /^(runs|records)\?(.*)$/s.exec(hash);
    if (list) {
      $(`filter-${list[1]}`).value = list[2];
      await filtered(list[1]);
      $(list[1]).scrollIntoView();
      return;
    }
    const named = /^(run|record|finding)-(\d{1,15})(-\d{1,9})?$/.exec(hash);
    let target = named ? null : hash && $(hash);
    if (named) target = named[1] === "record" ? await record(Number(named[2])) : await section(Number(named[2]));
    if (named && named[1] === "finding") target = $(hash) || target;
    if (!target) return;
    for (let above = target; above; above = above.parentElement) if (above.tagName === "DETAILS") above.open = true;
    target.scrollIntoView();
    if (target.tabIndex < 0) target.focus({ preventScroll: true });
  }

  async function copy(button) {
    const text = button.previousElementSibling.textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const range = document.createRange(); range.selectNodeContents(button.previousElementSibling);
      const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function prepare(root) {
    // What breaks is what somebody looks for, on a telephone too.
    for (const breaks of root.querySelectorAll("svg.chain .breaks")) {
      const box = breaks.closest(".scroll"), [inner, outer] = [breaks, box].map((each) => each.getBoundingClientRect());
      box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    }
    for (const button of root.querySelectorAll("button.copy")) { button.hidden = false; button.addEventListener("click", () => copy(button)); }
    for (const host of root.querySelectorAll("details.part")) {
      const searched = host.querySelector(".searched");
      if (!searched || searched.querySelectorAll("tbody tr, li").length < 12) continue;
      const form = element("form", undefined, "filter"), input = element("input");
      input.type = "search"; input.placeholder = "search"; input.setAttribute("aria-label", `Search in ${host.querySelector("summary").textContent}`);
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        for (const item of searched.querySelectorAll("tbody tr, li")) {
          item.hidden = wanted !== "" && !item.textContent.toLowerCase().includes(wanted);
          const inner = item.querySelector("details");
          if (inner && wanted) inner.open = !item.hidden;
        }
      });
      form.addEventListener("submit", (event) => event.preventDefault());
      form.append(input);
      host.querySelector("summary").after(form);
    }
  }

  function delayed(work) {
    let timer = 0;
    return () => { clearTimeout(timer); timer = setTimeout(work, 120); };
  }

  async function start() {
    prepare(document);
    const pages = { runs: $("filter-runs"), records: $("filter-records") };
    if (!pages.runs) return;
    const known = await loadRuns();
    runList = new List($("list-runs"), "runs", known.columns, (run) => run.cells.map((cell, at) => (at === 0 ? link(cell, `run-${run.number}`) : at === 5 ? element("span", cell, `outcome ${run.ending}`) : cell)), (run) => { location.hash = `run-${run.number}`; },
      (run, column) => [run.number, run.started, run.cells[2], run.version, run.cells[4], run.ending, run.ms, run.findings.length][column], [1, true]);
    runList.show(known.runs);
    recordList = new List($("list-records"), "records", ["record", "began (UTC)", "agent", "method", "what", "status", "time", "findings"], (at) => {
      const cursor = records.cursor; cursor.at = at;
      return cursor.cells().map((cell, column) => (column === 0 ? link(cell, `record-${cell}`) : column === 5 && cursor.failed ? element("span", cell, "bad") : cell));
    }, (at) => { location.hash = `record-${records.seqs[at]}`; }, (at, column) => {
      const cursor = records.cursor; cursor.at = at;
      return [cursor.seq, cursor.time, null, cursor.method, null, cursor.status, cursor.us, cursor.signs.length][column] ?? cursor.cells()[column];
    }, [0, false]);
    for (const [which, input] of Object.entries(pages)) {
      input.addEventListener("input", delayed(() => filtered(which)));
      input.form.addEventListener("submit", (event) => { event.preventDefault(); filtered(which); });
    }
    for (const shown of document.querySelectorAll(".scripted")) shown.hidden = false;
    for (const other of document.querySelectorAll(".unscripted")) if (!matchMedia("print").matches) other.hidden = true;
    addEventListener("beforeprint", () => { for (const evidence of document.querySelectorAll("#answer details")) evidence.open = true; for (const other of document.querySelectorAll(".unscripted")) other.hidden = false; });
    addEventListener("afterprint", () => { for (const other of document.querySelectorAll(".unscripted")) other.hidden = true; });
    addEventListener("hashchange", go);
    await go();
    // The records are unpacked when somebody comes near them.
    const watcher = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      if (!recordList.rows.length) await filtered("records");
    }, { rootMargin: "400px" });
    watcher.observe($("records"));
    document.documentElement.dataset.ready = "true";
  }

  start();
})();
