// What is below the pointer, in the place of the browser's own titles, which come late and without a line.
for (const chart of document.querySelectorAll(".timeline")) {
  const hits = chart.querySelector(".hits");
  const cursor = chart.querySelector(".cursor");
  const tip = chart.querySelector(".tip");
  if (!hits) continue;
  const texts = new Map();
  for (const rect of hits.querySelectorAll("rect")) {
    const title = rect.querySelector("title");
    texts.set(rect, title.textContent);
    title.remove();
  }
  hits.addEventListener("pointermove", (event) => {
    const text = texts.get(event.target);
    if (text === undefined) return;
    const room = chart.getBoundingClientRect();
    const column = event.target.getBoundingClientRect();
    const x = column.left + column.width / 2 - room.left;
    cursor.style.left = `${x}px`;
    tip.textContent = text;
    cursor.hidden = tip.hidden = false;
    const left = x + 12 + tip.offsetWidth > room.width ? x - 12 - tip.offsetWidth : x + 12;
    const top = Math.min(event.clientY - room.top, room.height - tip.offsetHeight);
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, top)}px`;
  });
  hits.addEventListener("pointerleave", () => {
    cursor.hidden = tip.hidden = true;
  });
}
