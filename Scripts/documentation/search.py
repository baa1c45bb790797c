"""Adds a header, a logo and a search to the site that docc created. The search works without a server or a network."""

import json
from pathlib import Path

PARTS = Path(__file__).resolve().parent / "site"


def finish(site, base_path):
    """Adds the search and returns the number of pages that users can find."""
    header = (PARTS / "header.html").read_text(encoding="utf-8").replace("BASE", base_path.rstrip("/"))
    for page in site.glob("**/index.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", f"{header}</body>", 1), encoding="utf-8")
    (site / "favicon.svg").write_bytes((PARTS / "logo.svg").read_bytes())
    entries = sorted(filter(None, map(entry, (site / "data/documentation").glob("**/*.json"))), key=lambda row: row[2])
    folder = site / "search"
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_bytes((PARTS / "search.html").read_bytes())
    rows = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    (folder / "index.js").write_text(f"const INDEX = {rows};\n", encoding="utf-8")
    return len(entries)


def entry(path):
    """Returns the title, kind, URL and text of a page, which is the whole text of an article or the summary of a symbol."""
    page = json.loads(path.read_text(encoding="utf-8"))
    data = page.get("metadata", {})
    # Groups of members that a type inherits from protocols have no text.
    if "title" not in data or path.stem.endswith("-implementations"):
        return None
    isArticle = page.get("kind") == "article"
    text = " ".join(words(page.get("abstract", [])))
    if isArticle:
        text += " " + " ".join(words(page.get("primaryContentSections", [])))
    kind = "page" if isArticle else data.get("roleHeading", "symbol").lower()
    address = page["identifier"]["url"].split("/documentation/", 1)[-1]
    return [data["title"], kind, f"documentation/{address.lower()}/", " ".join(text.split())]


def words(node):
    """Returns the texts in a tree of content, in order."""
    if isinstance(node, list):
        for part in node:
            yield from words(part)
    elif isinstance(node, dict):
        if isinstance(text := node.get("text") or node.get("code"), str):
            yield text
        for key in ("inlineContent", "content", "items", "rows"):
            yield from words(node.get(key, []))
