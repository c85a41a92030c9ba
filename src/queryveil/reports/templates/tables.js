{
  // Sorts and filters tables. Without it they stand in their own order, and nothing is missing.
  const SORTED = 3, FILTERED = 10; // the least rows for which it is worth while
  const SIGNS = { none: "", ascending: " ↑", descending: " ↓" };
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  // A cell as a number: "1,234", "14.8 % (12.0 to 17.1)", "< 0.1 %", "5 in 100,000", "3 of 12"; null if it has none.
  const number = (text) => {
    const found = /^([<>]?) ?(-?\d[\d,]*(?:\.\d+)?)(?:\s(%|in 100,000|of \d[\d,]*))?/.exec(text);
    if (!found) return null;
    const value = Number(found[2].replaceAll(",", "")) + (found[1] === "<" ? -1e-9 : found[1] === ">" ? 1e-9 : 0);
    const of = found[3]?.startsWith("of ") ? Number(found[3].slice(3).replaceAll(",", "")) : { "%": 100, "in 100,000": 1e5 }[found[3]];
    return value / (of ?? 1);
  };
  const text = (row, column) => row.cells[column].textContent.trim();
  const order = (column, numeric) => (a, b) => {
    const [x, y] = [text(a, column), text(b, column)];
    if (!numeric) return x.localeCompare(y, "en", { numeric: true });
    const [m, n] = [number(x), number(y)];
    return m === null || n === null ? 0 : m - n;
  };

  for (const table of document.querySelectorAll("table.data")) {
    const body = table.tBodies[0], rows = [...body.rows];
    if (rows.length < SORTED) continue;
    const heads = [...table.tHead.rows].at(-1).cells;
    [...heads].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      if (!button.textContent.trim()) button.setAttribute("aria-label", "first column");
      const sign = document.createElement("span");
      sign.ariaHidden = "true";
      button.append(sign);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      const numeric = head.classList.contains("number") && rows.some((row) => number(text(row, column)) !== null);
      button.addEventListener("click", () => {
        const now = NEXT[head.getAttribute("aria-sort")];
        for (const other of heads) {
          other.setAttribute("aria-sort", other === head ? now : "none");
          other.querySelector("button > span:last-child").textContent = other === head ? SIGNS[now] : "";
        }
        let sorted = rows;
        if (now !== "none") {
          // What has no number comes last in both directions.
          const empty = (row) => numeric && number(text(row, column)) === null;
          const some = rows.filter((row) => !empty(row)).sort(order(column, numeric));
          sorted = [...(now === "descending" ? some.reverse() : some), ...rows.filter(empty)];
        }
        body.append(...sorted);
      });
    });
    if (rows.length < FILTERED) continue;
    const [bar, label, field, shown] = ["p", "label", "input", "output"].map((name) => document.createElement(name));
    bar.className = "filter";
    field.type = "search";
    label.append("Only rows with the words ", field);
    bar.append(label, " ", shown);
    table.parentElement.before(bar);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const has = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => has.includes(word));
        left += !row.hidden;
      }
      shown.textContent = words.length ? `${left} of ${rows.length} rows` : "";
    });
  }
}
