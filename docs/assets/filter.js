// A field above each table of more than 15 rows: only rows that contain every word stay.
document.querySelectorAll(".md-typeset table:not([class])").forEach((table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= 15) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "table-filter";
  field.placeholder = `Filter ${rows.length} rows`;
  field.setAttribute("aria-label", field.placeholder);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  table.before(field);
});
