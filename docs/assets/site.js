// Buttons that copy code are no landmarks, and tables that scroll can be scrolled by keyboard.
const mark = () => {
  for (const each of document.querySelectorAll(".md-code__nav:not([role])")) each.setAttribute("role", "presentation");
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) each.tabIndex = 0;
};
new MutationObserver(mark).observe(document.documentElement, { childList: true, subtree: true });
document.addEventListener("DOMContentLoaded", mark);
