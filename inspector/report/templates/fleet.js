"use strict";
// The list of nodes of a fleet report. All data is text: nothing of it is ever taken for markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const HEIGHT = 30, BEYOND = 12;
  const ORDER = new Intl.Collator("en", { numeric: true });

  async function unpacked(name) {
    const text = atob($(`data-${name}`).textContent);
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function element(tag, text, kind, role) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    if (role) made.setAttribute("role", role);
    return made;
  }

  // A term is a word that is anywhere in a row, or COLUMN:PATTERN, where * is any part.
  function fits(pattern, text) {
    const parts = pattern.toLowerCase().split("*");
    let rest = text.toLowerCase();
    if (!rest.startsWith(parts[0])) return false;
    rest = rest.slice(parts[0].length);
    for (const part of parts.slice(1, -1)) {
      const at = rest.indexOf(part);
      if (at < 0) return false;
      rest = rest.slice(at + part.length);
    }
    return parts.length === 1 ? rest === "" : rest.endsWith(parts.at(-1));
  }

  const NAMES = { node: 0, agent: 0, state: 1, cause: 2, rule: 2, version: 3, environment: 4, env: 4 };

  function parsed(text) {
    return text.trim().split(/\s+/).filter(Boolean).map((word) => {
      const negated = /^[-!]./.test(word), term = negated ? word.slice(1) : word;
      const [key, value] = term.includes(":") ? term.split(/:(.*)/s) : [null, term];
      if (key !== null && !Object.hasOwn(NAMES, key.toLowerCase())) throw new Error(`There is no column '${key}': node, state, cause, version, environment.`);
      const column = key === null ? -1 : NAMES[key.toLowerCase()], low = value.toLowerCase();
      return (row) => (column < 0 ? row.some((cell) => String(cell).toLowerCase().includes(low)) : fits(value, row[column])) !== negated;
    });
  }

  class List {
    constructor(host, { columns, rows }) {
      this.rows = rows; this.found = rows; this.column = -1; this.descends = false;
      const root = element("div", undefined, "list nodes", "table");
      root.setAttribute("aria-label", "Nodes");
      const head = element("div", undefined, "row head", "row");
      this.heads = columns.map((title, column) => {
        const cell = element("span", undefined, undefined, "columnheader"), button = element("button", title);
        button.type = "button";
        button.addEventListener("click", () => this.sort(column));
        cell.append(button); head.append(cell);
        return cell;
      });
      this.view = element("div", undefined, "view", "rowgroup");
      this.view.tabIndex = 0;
      this.space = element("div", undefined, undefined, "presentation");
      this.view.append(this.space);
      const top = element("div", undefined, undefined, "rowgroup");
      top.append(head);
      root.append(top, this.view);
      host.replaceChildren(root);
      this.view.addEventListener("scroll", () => requestAnimationFrame(() => this.paint()), { passive: true });
      this.show(rows);
    }

    show(found) {
      this.found = found;
      if (this.column >= 0) {
        const sign = this.descends ? -1 : 1, column = this.column;
        this.found = [...found].sort((one, other) => sign * ORDER.compare(String(one[column]), String(other[column])));
      }
      this.space.style.setProperty("height", `${this.found.length * HEIGHT}px`);
      this.view.scrollTop = 0;
      this.paint();
    }

    sort(column) {
      this.descends = this.column === column && !this.descends; this.column = column;
      this.heads.forEach((cell, at) => cell.setAttribute("aria-sort", at !== column ? "none" : this.descends ? "descending" : "ascending"));
      this.show(this.found);
    }

    paint() {
      const first = Math.max(0, Math.floor(this.view.scrollTop / HEIGHT) - BEYOND);
      const last = Math.min(this.found.length, Math.ceil((this.view.scrollTop + this.view.clientHeight) / HEIGHT) + BEYOND);
      const drawn = [];
      for (let at = first; at < last; at++) {
        const row = element("div", undefined, "row", "row");
        row.style.setProperty("top", `${at * HEIGHT}px`);
        this.found[at].forEach((cell, column) => row.append(element("span", String(cell), column === 1 ? `outcome ${cell}` : undefined, "cell")));
        drawn.push(row);
      }
      this.space.replaceChildren(...drawn);
    }
  }

  async function begin() {
    const data = await unpacked("nodes"), list = new List($("list-nodes"), data);
    for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
    for (const each of document.querySelectorAll(".unscripted")) each.hidden = true;
    const input = $("filter-nodes"), output = document.querySelector("output[for=filter-nodes]");
    const filter = () => {
      try {
        const terms = parsed(input.value), found = data.rows.filter((row) => terms.every((term) => term(row)));
        list.show(found);
        output.textContent = `${found.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")}`;
      } catch (error) { output.textContent = error.message; }
    };
    input.addEventListener("input", filter);
    filter();
    list.paint();
    document.documentElement.dataset.ready = "";
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
  begin();
})();
