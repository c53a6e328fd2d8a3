"use strict";
// A click on the title of a column sorts the table by it, a second click the other way round.
// What has no value comes last both ways.
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const isNumber = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    // Of numbers the largest come first.
    const isAscending = before ? before === "descending" : !isNumber;
    const sign = isAscending ? 1 : -1;
    const body = head.closest("table").tBodies[0];
    const keyed = Array.from(body.rows, (row) => {
      const cell = row.cells[head.cellIndex];
      const text = cell.textContent.trim();
      const value = isNumber ? Number.parseFloat(cell.dataset.value) : text;
      return { row, value, isMissing: isNumber ? Number.isNaN(value) : text === "" };
    });
    keyed.sort((one, other) => {
      if (one.isMissing || other.isMissing) return one.isMissing - other.isMissing;
      return sign * (isNumber ? one.value - other.value : one.value.localeCompare(other.value));
    });
    body.append(...keyed.map((one) => one.row));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
  });
}
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
