/** What is seen of the report's page. Runs in the browser: `report.browser.ts` reads this file and sends it there. */
function look() {
  const scrolls = (element) => element.scrollWidth > element.clientWidth + 1;
  const boxes = [...document.querySelectorAll(".scroll")];
  const pageWidth = document.documentElement.clientWidth;
  // What lies beyond the page must lie in a box that scrolls.
  const cut = [...document.querySelectorAll("table, svg, pre, dl, p, h1")]
    .filter((element) => element.getBoundingClientRect().right > pageWidth + 1 && !element.closest(".scroll, pre"))
    .map((element) => `${element.tagName} ${element.className}`);
  const hinted = (box) => {
    const { content, visibility } = getComputedStyle(box, "::before");
    return content.includes("scroll") && visibility === "visible";
  };
  const sizeOf = (text) => {
    const svg = text.closest("svg");
    return (
      Number.parseFloat(getComputedStyle(text).fontSize) *
      (svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)
    );
  };
  const rgb = (color) => (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const luminance = (color) =>
    color
      .map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = rgb(getComputedStyle(document.body).backgroundColor);
  const wide = document.querySelector("figure.wide svg[aria-label^='How far']");
  const squares = [...(wide?.querySelectorAll(".mark-rect path") ?? [])].filter(
    (square) => getComputedStyle(square).fill !== "none",
  );
  const numbers = [...(wide?.querySelectorAll(".mark-text.role-mark text") ?? [])];
  const contrasts = numbers.map((number, i) => {
    const { fill, opacity, fillOpacity } = getComputedStyle(squares[i]);
    const share = Number(opacity) * Number(fillOpacity);
    const back = rgb(fill).map((part, j) => share * part + (1 - share) * paper[j]);
    const [light, dark] = [luminance(back), luminance(rgb(getComputedStyle(number).fill))].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  });
  return {
    cut,
    pageScrolls: scrolls(document.documentElement),
    wide: boxes.filter(scrolls).length,
    tables: document.querySelectorAll("table").length,
    unhinted: boxes.filter((box) => scrolls(box) !== hinted(box)).map((box) => box.textContent.slice(0, 40)),
    smallest: Math.min(...[...document.querySelectorAll("svg text")].map(sizeOf)),
    heat: wide ? Math.min(...[...wide.querySelectorAll("text")].map(sizeOf)) : undefined,
    squares: squares.length,
    contrasts,
    empty: document.querySelectorAll("figure .empty").length,
    text: document.body.innerText,
  };
}

look();
