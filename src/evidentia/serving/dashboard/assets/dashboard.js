// The little that htmx does not do: leave when the session ends, close the menu, and draw charts from the tables beside them.
(() => {
  "use strict";
  document.addEventListener("signed-out", () => location.reload());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.who[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.who[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
})();
