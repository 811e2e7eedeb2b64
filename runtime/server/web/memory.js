// SPDX-License-Identifier: MIT
// Every pool, and in it every tenant: guaranteed, in use, peak, limit.
function bytes(n) {
  if (n === null) return "no limit";
  const u = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  while (n >= 1024 && i < 3) { n /= 1024; i++; }
  return (i ? n.toFixed(n < 10 ? 1 : 0) : n) + " " + u[i];
}

function el(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}

function mark(bar, cls, prop, v, size) {
  const i = el("i", cls);
  i.style[prop] = Math.min(100, v / size * 100) + "%";
  bar.append(i);
}

export function drawMemory(box, m) {
  box.className = "";
  box.replaceChildren(...m.pools.map((p) => {
    const pool = el("div", "pool"), h = el("h3", "", p.pool);
    h.append(el("span", "", `${bytes(p.charged)} of ${bytes(p.size)}`));
    pool.append(h);
    for (const t of m.tenants.filter((x) => x.pool === p.pool && (x.current || x.peak || x.min))) {
      const row = el("div", "tenant " + t.level), bar = el("div", "bar");
      bar.title = `min ${bytes(t.min)}, high ${bytes(t.high)}, max ${bytes(t.max)}, peak ${bytes(t.peak)}`;
      if (t.min) mark(bar, "min", "width", t.min, p.size);
      mark(bar, "cur", "width", t.current, p.size);
      mark(bar, "peak", "left", t.peak, p.size);
      if (t.max !== null && t.max < p.size) mark(bar, "max", "left", t.max, p.size);
      row.append(el("span", "", t.tenant), bar, el("span", "n", bytes(t.current)));
      pool.append(row);
    }
    return pool;
  }));
}
