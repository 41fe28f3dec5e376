// Tables: columns of sentences keep a width that can be read; above more than 15 rows is a field, and only rows that contain every
// word of it stay; of very many rows the first ones are shown, until the field has a word or the others are asked for.
const FILTERED = 15, AT_ONCE = 200, SENTENCE = 24;

document.querySelectorAll(".md-typeset table:not([class])").forEach((table) => {
  const rows = [...(table.tBodies[0] || table).rows];
  [...(rows[0] || table).cells || []].forEach((_, column) => {
    const cells = [...table.rows].map((row) => row.cells[column]).filter(Boolean);
    if (cells.some((cell) => cell.textContent.trim().replace(/\s+/g, " ").length > SENTENCE)) cells.forEach((cell) => cell.classList.add("text"));
  });
  if (rows.length <= FILTERED) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "table-filter";
  field.placeholder = `Filter ${rows.length} rows`;
  field.setAttribute("aria-label", field.placeholder);
  const more = document.createElement("button");
  more.className = "table-more";
  more.textContent = `Show all ${rows.length} rows`;
  let most = AT_ONCE;
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = rows.map((row) => words.every((word) => row.textContent.toLowerCase().includes(word)));
    const shown = words.length ? Infinity : most;
    rows.forEach((row, number) => { row.hidden = !fits[number] || number >= shown; });
    more.hidden = rows.length <= shown;
  };
  field.addEventListener("input", apply);
  more.addEventListener("click", () => { most = Infinity; apply(); });
  table.before(field);
  table.after(more);
  apply();
});
