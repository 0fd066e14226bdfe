"""Look at the built site in Chromium: python .ci/site.py SITE.

On a phone no page may be wider than the screen, the search must find what people look for, every
page of a function must link to its source, and nothing may come from another machine.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from html import unescape
from pathlib import Path
from typing import Any

PHONE = 390  # pixels
SEARCHES = {  # what people look for, and the title of one of the pages that they are shown
    "weights": "A five-minute tutorial",
    "recalibration": "Recalibrate a model’s probabilities",
    "scikit-learn": "With scikit-learn",
    "smooth_ce": "smooth_ce",
}
_PROBE = """\
<!DOCTYPE html><title>probe</title><body><script>
const pages = PAGES, searches = SEARCHES, found = {wide: {}, results: {}};
const open = (address) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.style = "width: WIDTHpx; height: 800px; border: 0";
  frame.onload = () => done(frame);
  frame.src = address;
  document.body.append(frame);
});
const wait = (time) => new Promise((done) => setTimeout(done, time));
const scrolls = (part, view) => {
  for (; part.tagName != "ARTICLE"; part = part.parentElement) {
    if (/auto|scroll/.test(view.getComputedStyle(part).overflowX)) return true;
  }
  return false;
};
(async () => {
  for (const page of pages) {
    const frame = await open(page);
    const beyond = [...frame.contentDocument.querySelectorAll("article *")].filter((part) =>
      part.getBoundingClientRect().right > WIDTH && !scrolls(part, frame.contentWindow));
    if (beyond.length) found.wide[page] = beyond[0].outerHTML.slice(0, 80);
    frame.remove();
  }
  for (const words of searches) {
    const frame = await open("search.html?q=" + encodeURIComponent(words));
    const listed = () => [...frame.contentDocument.querySelectorAll("#search-results li a")];
    const title = () => frame.contentDocument.querySelector("#search-results h2 + p");
    for (let i = 0; i < 300 && !/finished/.test(title()?.textContent); i++) await wait(100);
    found.results[words] = listed().map((link) => link.textContent);
    frame.remove();
  }
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = JSON.stringify(found);
  document.body.append(shown);
})();
</script></body>
"""


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing: a browser that leaves a page does not wait for the rest of it."""


def probe(site: Path, pages: list[str]) -> dict[str, Any]:
    """Return what a browser finds: pages wider than a phone, and the results of searches."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        message = "no Chromium is installed"
        raise SystemExit(message)
    text = _PROBE.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(PHONE))
    text = text.replace("SEARCHES", json.dumps(list(SEARCHES)))
    handler = functools.partial(_Files, directory=site)
    with (
        _Server(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (site / "probe.html").write_text(text, encoding="utf-8")
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={folder}", "--virtual-time-budget=600000", "--dump-dom",
            f"http://127.0.0.1:{server.server_port}/probe.html",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=500)
        finally:
            (site / "probe.html").unlink()
            server.shutdown()
    [found] = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout)
    result: dict[str, Any] = json.loads(unescape(found))
    return result


def faults(site: Path) -> list[str]:
    """Return what is wrong with the site."""
    texts = {
        str(path.relative_to(site)): path.read_text(encoding="utf-8")
        for path in sorted(site.rglob("*.html"))
        if path.relative_to(site).parts[0] not in {"_modules", "_static"}
    }
    foreign = r"<(?:script|img|iframe|source)\b[^>]*\ssrc=\"(?:https?:)?//|"
    foreign += r"<link\b[^>]*rel=\"(?:stylesheet|preload)\"[^>]*href=\"(?:https?:)?//"
    wrong = [
        f"{page} needs the network" for page, text in texts.items() if re.search(foreign, text)
    ]
    functions = {page: text for page, text in texts.items() if 'class="py function"' in text}
    wrong += [
        f"{page} does not link to the source"
        for page, text in functions.items()
        if "viewcode-link" not in text
    ]
    if len(functions) < 60:
        wrong.append(f"only {len(functions)} pages of functions")
    if "Figure: frequency of label 1 over" not in texts["tutorial.html"]:
        wrong.append("tutorial.html has no figure")
    seen = [page for page in texts if not page.startswith("reference/")]
    seen += ["reference/index.html", "reference/recalibration.html", "reference/report.html"]
    found = probe(site, seen)
    wrong += [
        f"{page} is wider than a phone of {PHONE} pixels: {part}"
        for page, part in found["wide"].items()
    ]
    wrong += [
        f"the search for {words!r} does not find {title!r} but {found['results'][words]}"
        for words, title in SEARCHES.items()
        if not any(title in result for result in found["results"][words])
    ]
    counts = ", ".join(f"{words}: {len(pages)}" for words, pages in found["results"].items())
    print(f"{len(texts)} pages, {len(functions)} of functions, {len(seen)} seen on a phone")
    print(f"pages found by the search: {counts}")
    return wrong


if __name__ == "__main__":
    sys.exit("\n".join(faults(Path(sys.argv[1]))) or 0)
