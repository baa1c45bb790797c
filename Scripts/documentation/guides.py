"""Connects each central type with its guide, as guides.tsv lists them.

The last line of a type's doc comment names the file of its guide, because DocC cannot link from a library to pages that it builds
later. In the merged site, this file name becomes a link, and the reference page lists the guide under “See Also”.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = Path("Scripts/documentation/guides.tsv")
LINE = re.compile(r"^ */// Guide: `([^`]+)`$", re.M)
DECLARATION = re.compile(r"^(?:@[^\n]*\n|#[^\n]*\n)*(?:public|open) (?:final )?(?:class|struct|enum|protocol|actor) (\w+)", re.M)


def guides():
    """Returns the path of the guide of each type."""
    rows = (ROOT / TABLE).read_text(encoding="utf-8").splitlines()[1:]
    return dict(row.split("\t") for row in rows)


def wrong_guides(table, sources, pages):
    """Returns the rows that the doc comment of a type or its guide contradicts. Sources and pages are texts."""
    named = {}
    for source in sources:
        for comment in re.finditer(r"(?:^///[^\n]*\n)+", source, re.M):
            if (line := LINE.search(comment[0])) and (owner := DECLARATION.match(source, comment.end())):
                named[owner[1]] = line[1]
    for name in sorted(table.keys() | named.keys()):
        if table.get(name) != named.get(name):
            yield f"{TABLE}: the guide of {name} is {table.get(name)}, but the doc comment of the type names {named.get(name)}"
    for name, path in table.items():
        if f"`{name}`" not in pages.get(path, ""):
            yield f"{path}: the guide does not name `{name}`"


def check():
    table = guides()
    sources = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("Sources/**/*.swift"))]
    pages = {path: (ROOT / path).read_text(encoding="utf-8") for path in set(table.values()) if (ROOT / path).exists()}
    return wrong_guides(table, sources, pages)


def link(site, name_of):
    """Links the reference page of each type to its guide, and returns the problems. `name_of` names the page of a file."""
    data = site / "data/documentation"
    for name, path in guides().items():
        found = [page for page in data.glob(f"*/{name.lower()}.json") if page.parent.name != "operationkit"]
        guide = data / f"operationkit/{name_of(path).lower()}.json"
        if len(found) != 1 or not guide.exists():
            pages = f"{len(found)} pages of {name} and {int(guide.exists())} of {path}"
            yield f"{TABLE}: error: expected one page of each on the site, found {pages}"
            continue
        page, article = json.loads(found[0].read_text(encoding="utf-8")), json.loads(guide.read_text(encoding="utf-8"))
        identifier = article["identifier"]["url"]
        # The summary of the guide may contain links.
        page["references"] = article.get("references", {}) | page["references"]
        page["references"][identifier] = {
            "identifier": identifier, "title": article["metadata"]["title"], "abstract": article.get("abstract", []),
            "url": f"/documentation/operationkit/{guide.stem}", "kind": "article", "role": "article", "type": "topic",
        }
        if not replace(page.get("primaryContentSections", []), path, identifier):
            yield f"{TABLE}: error: the reference page of {name} does not name {path}"
        section = {"title": "Guide", "identifiers": [identifier], "anchor": "Guide"}
        page["seeAlsoSections"] = [section, *page.get("seeAlsoSections", [])]
        found[0].write_text(json.dumps(page, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def replace(node, code, identifier):
    """Replaces the code span in a tree of content by a link, and returns whether there was one."""
    if isinstance(node, list):
        return any([replace(part, code, identifier) for part in node])
    if not isinstance(node, dict):
        return False
    if node.get("type") == "codeVoice" and node.get("code") == code:
        node.clear()
        node.update(type="reference", identifier=identifier, isActive=True)
        return True
    return any([replace(part, code, identifier) for part in node.values()])
