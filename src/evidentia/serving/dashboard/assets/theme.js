// Runs before the page is drawn, so that a theme that was chosen is there from the first moment.
(() => {
  "use strict";
  const kept = (() => { try { return localStorage.getItem("evidentia-theme"); } catch { return null; } })();
  const root = document.documentElement;
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
    show();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("evidentia-theme", root.dataset.theme); } catch { /* private windows keep nothing */ }
      show();
      document.dispatchEvent(new CustomEvent("evidentia:theme"));
    });
  });
})();
