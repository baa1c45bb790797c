"""Adds a header, a logo and a search to the site that docc created. The search works without a server or a network."""

import json
import re
from pathlib import Path

from documentation import source

PARTS = Path(__file__).resolve().parent / "site"
TITLE = "OperationKit"
# The characters of a reference page that the search reads, so that the index stays small.
LONGEST_SYMBOL = 400
# The symbols whose titles in the sidebar are declarations, and the width of the sidebar.
SHORTENED = ("property", "case", "method", "init", "subscript", "func", "op")
WIDEST = 32
MODIFIERS = re.compile(r"(?:(?:static|class|convenience|mutating|nonisolated|override|func|var|let|case) )*")
GENERICS = re.compile(r"(?<=\w)<[^()]*>(?=\()")
CALL = re.compile(r"\w+\([^()]*\)")
INLINE = {"text", "codeVoice", "reference", "emphasis", "strong", "link", "newTerm", "inlineHead", "strikethrough"}
CONTENT = ("inlineContent", "content", "items", "rows", "parameters", "term", "definition", "tabs")


def finish(site, base_path, files):
    """Adds the header, the search and the files of the repository, and returns the number of pages that users can find."""
    base = base_path.rstrip("/")
    header = (PARTS / "header.html").read_text(encoding="utf-8").replace("BASE", base)
    for page in site.glob("**/index.html"):
        text = page.read_text(encoding="utf-8")
        text = text.replace("</body>", f"{header}</body>", 1).replace("<title>Documentation</title>", f"<title>{TITLE}</title>")
        page.write_text(text.replace(f"{base}/favicon.ico", f"{base}/favicon.svg"), encoding="utf-8")
    name(site)
    shorten_sidebar(site)
    (site / "favicon.svg").write_bytes((PARTS / "logo.svg").read_bytes())
    entries = sorted(filter(None, map(entry, (site / "data/documentation").glob("**/*.json"))), key=lambda row: row[2])
    folder = site / "search"
    folder.mkdir(exist_ok=True)
    # The same header for a page without docc's scripts, in a shadow tree so that its styles do not apply to the page.
    shadow = header.replace('<template id="custom-header">', '<div><template shadowrootmode="open">') + "</div>"
    page = (PARTS / "search.html").read_text(encoding="utf-8").replace("HEADER", shadow)
    (folder / "index.html").write_text(page, encoding="utf-8")
    source.write(site, files, base, shadow)
    rows = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    (folder / "index.js").write_text(f"const INDEX = {rows};\n", encoding="utf-8")
    return len(entries)


def name(site):
    """Sets the title of browser windows, and the title above each page, which docc calls “Documentation”."""
    settings = {"meta": {"title": TITLE}, "theme": {}, "features": {}}
    (site / "theme-settings.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")
    for script in site.glob("js/index.*.js"):
        text = script.read_text(encoding="utf-8")
        old, new = (f'"documentation":{{"title":"{title}"' for title in ("Documentation", TITLE))
        script.write_text(text.replace(old, new), encoding="utf-8")


def shorten_sidebar(site):
    """Shortens the titles of symbols in the sidebar, which cuts a title of more than 32 characters.

    A property loses its type, and a function its result. If the title is still too long, a function keeps only its labels.
    """
    path = site / "index/index.json"
    index = json.loads(path.read_text(encoding="utf-8"))

    def shorten(nodes):
        for node in nodes:
            shorten(node.get("children", []))
            if node.get("type") not in SHORTENED or len(node["title"]) <= WIDEST:
                continue
            page = json.loads((site / f"data{node['path']}.json").read_text(encoding="utf-8"))
            modifiers = MODIFIERS.match(node["title"])[0]
            call = CALL.match(GENERICS.sub("", node["title"].removeprefix(modifiers)))
            name = page["metadata"]["title"]
            titles = [modifiers + call[0]] if call else []
            node["title"] = next((title for title in [*titles, modifiers + name] if len(title) <= WIDEST), name)

    for nodes in index["interfaceLanguages"].values():
        shorten(nodes)
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def entry(path):
    """Returns the title, kind, URL, text and headings of a page. The text of a reference page is shortened."""
    page = json.loads(path.read_text(encoding="utf-8"))
    data = page.get("metadata", {})
    # Groups of members that a type inherits from protocols have no text.
    if "title" not in data or path.stem.endswith("-implementations"):
        return None
    is_article = page.get("kind") == "article"
    content = [page.get("abstract", []), page.get("primaryContentSections", [])]
    text = " ".join(filter(None, (" ".join(words(part, page).split()) for part in content)))
    kind = "page" if is_article else data.get("roleHeading", "symbol").lower()
    address = page["identifier"]["url"].split("/documentation/", 1)[-1]
    row = [data["title"], kind, f"documentation/{address.lower()}/", text if is_article else text[:LONGEST_SYMBOL]]
    if not is_article:
        return row
    return [*row, "; ".join([*headings(content), *keywords(page)])]


def keywords(page):
    """Returns the keywords of an article, which its last paragraph can list."""
    blocks = [block for section in page.get("primaryContentSections", []) for block in section.get("content", [])]
    last = words(blocks[-1:], page).strip()
    return [last.removeprefix("Keywords:").strip()] if last.startswith("Keywords:") else []


def words(node, page):
    """Returns the text in a tree of content, with a space between blocks and none within a sentence."""
    if isinstance(node, list):
        is_inline = all(isinstance(part, dict) and part.get("type") in INLINE for part in node)
        return ("" if is_inline else " ").join(words(part, page) for part in node)
    if not isinstance(node, dict) or node.get("kind") == "declarations" or node.get("text") in ("Overview", "Discussion"):
        return ""
    if node.get("type") == "reference":
        target = page.get("references", {}).get(node["identifier"], {})
        return node.get("overridingTitle") or target.get("title", "")
    text = node.get("text") or node.get("code") or node.get("name") or ""
    parts = ["\n".join(text) if isinstance(text, list) else text]
    parts += [words(node[key], page) for key in CONTENT if key in node]
    return " ".join(filter(None, parts))


def headings(node):
    """Returns the headings in a tree of content."""
    if isinstance(node, dict):
        if node.get("type") == "heading":
            return [node["text"]]
        node = list(node.values())
    return [text for part in node for text in headings(part)] if isinstance(node, list) else []
