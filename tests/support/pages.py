"""HTML pages: what they say to a parser, and what a real browser makes of them."""

import shutil
import subprocess
from html.parser import HTMLParser

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Page(HTMLParser):
    """The elements, texts and images of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data):
        self.text += data


PROBE = """
<script>
function luminance(color) {
  const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!color.endsWith(", 0)")) return color;
  }
  return "rgb(255, 255, 255)";
}
addEventListener("load", () => {
  let contrast = 21;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const a = luminance(getComputedStyle(element).color), b = luminance(ground(element));
    contrast = Math.min(contrast, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  let beyond = 0;
  for (const each of document.querySelectorAll(".tip")) {
    each.focus();
    const place = each.querySelector(".meaning").getBoundingClientRect();
    beyond = Math.max(beyond, -place.left, place.right - innerWidth);
  }
  const passed = [];
  for (const each of document.querySelectorAll("a, summary, .tip, .scroll")) {
    if (!each.checkVisibility()) continue;
    each.focus();
    const seen = getComputedStyle(each).outlineStyle !== "none";
    const reached = document.activeElement === each && each.tabIndex === 0;
    if (!reached || !seen) passed.push(each.className);
  }
  const tip = document.querySelector(".tip");
  tip.focus();
  const result = {
    images: [...document.images].map(image => image.naturalWidth),
    overflow: document.documentElement.scrollWidth - innerWidth,
    width: innerWidth,
    beyond,
    contrast,
    tip: getComputedStyle(tip.querySelector(".meaning")).display,
    focusable: document.querySelectorAll("[tabindex='0']").length,
    folded: [...document.querySelectorAll("details")].map(each =>
      each.getBoundingClientRect().height - each.firstElementChild.getBoundingClientRect().height),
    passed,
    hidden: [...document.querySelectorAll(".contents, .meaning")].every(each =>
      getComputedStyle(each).display === "none"),
  };
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify(result);
  top.document.body.append(pre);
});
</script>
"""


def browse(page, tmp_path, width, *flags):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900",
        "--enable-logging=stderr", "--virtual-time-budget=5000", *flags, path.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
