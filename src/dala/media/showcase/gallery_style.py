"""The gallery's style sheet, and the script of its before/after sliders."""

from __future__ import annotations

STYLE = """
:root {
  --ground: #f6f5f2; --card: #ffffff; --ink: #1c1d21; --soft: #5d606b; --line: #e2e0da;
  --accent: #b3261e; --code: #f1efe9; --check: #d9d7d0; --shadow: 0 1px 3px #0000001f;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-look="light"]) {
    --ground: #131417; --card: #1d1f24; --ink: #eceae5; --soft: #a2a5b0; --line: #2e3138;
    --accent: #ff8a7a; --code: #14161a; --check: #2b2e35; --shadow: none;
  }
}
:root[data-look="dark"] {
  --ground: #131417; --card: #1d1f24; --ink: #eceae5; --soft: #a2a5b0; --line: #2e3138;
  --accent: #ff8a7a; --code: #14161a; --check: #2b2e35; --shadow: none;
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 5rem; }
body {
  margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
header, main, footer { max-width: 1500px; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 2.5rem); }
header { padding-top: clamp(1.5rem, 5vw, 3.5rem); padding-bottom: 1rem; }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.8rem); line-height: 1.1; margin: 0 0 .6rem;
  letter-spacing: -.02em; text-wrap: balance; }
header p { margin: 0 0 .3rem; max-width: 44rem; color: var(--soft); }
header .made { font-size: .875rem; }
nav {
  position: sticky; top: 0; z-index: 5; display: flex; gap: .6rem; align-items: center;
  padding: .6rem clamp(1rem, 3vw, 2.5rem); background: var(--ground);
  border-bottom: 1px solid var(--line); max-width: 1500px; margin: 0 auto;
}
nav div { display: flex; gap: .4rem; overflow-x: auto; flex: 1; scrollbar-width: none; }
nav a {
  color: var(--ink); text-decoration: none; white-space: nowrap; padding: .3rem .75rem;
  border: 1px solid var(--line); border-radius: 99px; background: var(--card); font-size: .9rem;
}
nav a:hover { border-color: var(--accent); }
nav a span { color: var(--soft); font-size: .8rem; }
nav input, nav button {
  font: inherit; font-size: .9rem; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 99px; padding: .3rem .9rem; min-width: 0;
}
nav input { width: 11rem; }
nav button { cursor: pointer; padding: .3rem .7rem; }
h2 { font-size: 1.35rem; margin: 2rem 0 .9rem; letter-spacing: -.01em; }
h2::first-letter { text-transform: uppercase; }
.grid { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
article {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; overflow: hidden;
  box-shadow: var(--shadow); padding-bottom: 1rem; min-width: 0;
}
article > :not(figure) { margin-left: 1rem; margin-right: 1rem; }
article h3 { margin-top: .8rem; margin-bottom: .1rem; font-size: 1.05rem; }
article h3 a { color: inherit; text-decoration: none; font-family: ui-monospace, "SF Mono", Menlo,
  Consolas, monospace; }
article h3 a:hover { color: var(--accent); }
article p { margin-top: 0; margin-bottom: .6rem; color: var(--soft); font-size: .93rem; }
article .note { font-size: .85rem; color: var(--accent); margin-top: -.3rem; }
figure {
  position: relative; margin: 0; overflow: hidden; --at: 50%; display: grid; place-items: center;
  background: repeating-conic-gradient(var(--check) 0 25%, var(--card) 0 50%) 0 0 / 20px 20px;
}
figure img { display: block; }
figure .before { position: absolute; inset: 0; clip-path: inset(0 calc(100% - var(--at)) 0 0); }
figure .before img { width: 100%; height: 100%; object-fit: cover; }
figure input {
  position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: ew-resize; touch-action: pan-y;
}
figure i {
  position: absolute; top: 0; bottom: 0; left: var(--at); width: 2px; margin-left: -1px;
  background: #fff; box-shadow: 0 0 4px #0009; pointer-events: none;
}
figure i::after {
  content: "\\2039\\2009\\203a"; position: absolute; top: 50%; left: 50%; width: 32px; height: 32px;
  margin: -16px 0 0 -16px; border-radius: 50%; background: #fff; color: #222; text-align: center;
  font: 600 18px/28px system-ui, sans-serif; box-shadow: 0 1px 5px #0007;
}
figure input:focus-visible ~ i::after { outline: 3px solid var(--accent); outline-offset: 2px; }
figure b {
  position: absolute; bottom: .5rem; left: .5rem; padding: .05rem .5rem; border-radius: 99px;
  background: #000a; color: #fff; font: 500 .75rem/1.5 system-ui, sans-serif; pointer-events: none;
}
figure b:last-child { left: auto; right: .5rem; }
pre {
  margin: 0; padding: .55rem .7rem; background: var(--code); border-radius: 8px; font-size: .82rem;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
details { margin-top: .6rem; font-size: .85rem; }
summary { cursor: pointer; color: var(--soft); }
table { border-collapse: collapse; width: 100%; margin-top: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; }
td:first-child { font-family: ui-monospace, Menlo, Consolas, monospace; overflow-wrap: normal; }
footer { padding-top: 2.5rem; padding-bottom: 3rem; color: var(--soft); font-size: .875rem; }
[hidden] { display: none !important; }
@media (max-width: 640px) {
  nav { flex-wrap: wrap; position: static; }
  nav div { flex: 1 0 100%; }
  nav input { flex: 1; }
  html { scroll-padding-top: 1rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print { nav { display: none; } article { break-inside: avoid; } }
"""

SCRIPT = """
for (const range of document.querySelectorAll('figure input')) {
  const show = () => range.parentElement.style.setProperty('--at', range.value + '%');
  range.addEventListener('input', show);
  show();
}
const root = document.documentElement;
document.getElementById('look').addEventListener('click', () => {
  const dark = root.dataset.look ? root.dataset.look === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.look = dark ? 'light' : 'dark';
});
document.getElementById('find').addEventListener('input', (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  let found = 0;
  for (const section of document.querySelectorAll('section')) {
    let here = 0;
    for (const card of section.querySelectorAll('article')) {
      card.hidden = !card.dataset.find.includes(wanted);
      here += !card.hidden;
    }
    section.hidden = !here;
    found += here;
  }
  document.getElementById('none').hidden = found > 0;
});
"""
