"""Creates a catalog of articles from the Markdown files of the repository, so that each page exists only once.

GitHub and DocC differ in a few points, which this module adapts: links between files and to headings, comments, and pages with the
same name in different folders. Names of public types become links to their pages.
"""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from documentation import source

ROOT = Path(__file__).resolve().parent.parent.parent
FRONT = "Docs/Welcome.md"
# The page of the repository, which the site shows under another title.
OVERVIEW = "README.md"
CONTENTS = "Docs/README.md"
ABOUT = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
# The groups of the front page, each with its folder, in the order in which readers need them.
GROUPS = {
    "Get started": "Tutorials",
    "Recipes": "HowTo",
    "Guides": "Guides",
    "Migrate": "Migration",
}
WITHOUT_REFERENCE = (
    "`OperationBackgroundSessions` builds only on Apple platforms, so Xcode shows its reference, and this site does not.")
# Pages for contributors, which are only in the repository.
INTERNAL = ("Docs/Design/", "Docs/Decisions/")

FENCE = re.compile(r"\s*(```+|~~~+)")
COMMENT = re.compile(r"<!--.*?-->", re.S)
HEADING = re.compile(r"(#{1,6}) +(.*?)\s*$")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
# A link whose text spans two lines, with the punctuation after the link, and the space after which the line can break instead.
WRAPPED = re.compile(r"\[([^\[\]\n]*)\n *([^\[\]\n]*)\]\(([^()\s]+)\)(\S*)( ?)")
# A link to a file that was not recognized. The addresses of files outside the catalog begin with a slash or a scheme.
LEFT_OVER = re.compile(r"\]\((?!/|[a-z]+:)[^()\s]*\.md[^()\s]*\)")
CODE = re.compile(r"`([^`\n]+)`")


@dataclass
class Page:
    path: str  # in the repository
    name: str  # in the catalog
    lines: list = field(default_factory=list)
    anchors: dict = field(default_factory=dict)  # the anchor of a heading on GitHub and in DocC

    @property
    def title(self):
        return next((HEADING.match(line)[2] for line in self.lines if line.startswith("# ")), self.name)


class Site:
    def __init__(self, types, source_url="", base_path=""):
        self.types = types  # the name of a public type, and its module
        self.source_url = source_url  # the URL of the repository's files, or empty if the site contains them
        self.base_path = base_path.rstrip("/")
        self.files = set()  # the files that the site must contain
        self.problems = []
        self.pages = {page.path: page for page in map(read_page, pages_of_repository())}
        self.images = {}

    def write(self, catalog):
        shutil.rmtree(catalog, ignore_errors=True)
        catalog.mkdir(parents=True)
        for page in self.pages.values():
            text = "\n".join(self.converted(page))
            if page.path == FRONT:
                text = with_reference(text, dict.fromkeys(self.types.values())) + "\n" + self.topics()
            (catalog / f"{page.name}.md").write_text(text, encoding="utf-8")
        for name, path in self.images.items():
            shutil.copy(path, catalog / name)
        return self.problems

    def converted(self, page):
        is_code, is_titled = False, False
        for number, line in enumerate(page.lines, 1):
            if FENCE.match(line):
                is_code = not is_code
            if is_code or FENCE.match(line):
                yield line
                continue
            place = f"{page.path}:{number}"
            if page.path == OVERVIEW and line.startswith("# "):
                yield "# About OperationKit"
            elif HEADING.match(line):
                yield plain_heading(line)
            else:
                converted = self.linked_types(LINK.sub(lambda match: self.link(match, page, place), line))
                if LEFT_OVER.search(CODE.sub("", converted)):
                    self.problems.append(f"{place}: error: the script cannot read a link in this line: {line.strip()}")
                yield converted
            if line.startswith("# ") and not is_titled:
                is_titled = True
                if page.path == FRONT:
                    yield "\n@Metadata {\n    @TechnologyRoot\n    @TitleHeading(\"Swift package\")\n}"

    def link(self, match, page, place):
        is_image, text, address = match.groups()
        if re.match(r"[a-z]+:", address):
            return match[0]
        file, _, anchor = address.partition("#")
        path = str((ROOT / page.path).parent.joinpath(file).resolve().relative_to(ROOT)) if file else page.path
        if is_image:
            return self.image(text, path, place)
        target = self.pages.get(path)
        if target is None:
            if not (ROOT / path).exists():
                self.problems.append(f"{place}: error: the target of the link does not exist: {address}")
                return text
            # A file of the repository that is not a page of the site.
            if self.source_url:
                return f"[{text}]({self.source_url.rstrip('/')}/{path})"
            self.files.add(path)
            return f"[{text}]({self.base_path}/{source.address(path)})"
        # DocC does not support anchors on the root page.
        if not anchor or target.path == FRONT:
            return f"[{text}](doc:{target.name})"
        if anchor not in target.anchors:
            self.problems.append(f"{place}: error: {path} has no heading with the anchor #{anchor}")
            return text
        return f"[{text}](doc:{target.name}#{target.anchors[anchor]})"

    def image(self, text, path, place):
        source = ROOT / path
        if not source.exists():
            self.problems.append(f"{place}: error: the image {path} does not exist")
        elif self.images.setdefault(source.name, source) != source:
            self.problems.append(f"{place}: error: two images have the name {source.name}")
        return f"![{text}]({source.name})"

    def linked_types(self, line):
        """Returns the line with links for the names of public types, except names that are already in a link."""
        parts, position = [], 0
        for match in re.finditer(r"\[[^\]]*\]\([^)]*\)", line):
            parts += [self.linked(line[position : match.start()]), match[0]]
            position = match.end()
        return "".join([*parts, self.linked(line[position:])])

    def linked(self, text):
        return CODE.sub(
            lambda match: f"``/{module}/{match[1]}``" if (module := self.types.get(match[1])) else match[0],
            text)

    def topics(self):
        lines = ["", "## Topics", "", "### Begin here", ""]
        lines += [f"- <doc:{self.pages[path].name}>" for path in (OVERVIEW, CONTENTS)]
        order = self.order()
        first = sorted(filter(is_first, self.pages.values()), key=lambda page: order.get(page.path, len(order)))
        lines += [f"- <doc:{page.name}>" for page in first]
        for title, folder in GROUPS.items():
            pages = sorted(
                (page for page in self.pages.values() if page.path.startswith(f"Docs/{folder}/")),
                key=lambda page: (not page.path.endswith("/README.md"), order.get(page.path, len(order)), page.path))
            if pages:
                lines += ["", f"### {title}", "", *(f"- <doc:{page.name}>" for page in pages)]
        # A folder that is missing in the list above comes after the other folders.
        others = [page for page in self.pages.values() if self.is_in_no_group(page)]
        if others:
            lines += ["", "### About the project", "", *(f"- <doc:{page.name}>" for page in others)]
        return "\n".join(lines) + "\n"

    def order(self):
        """Returns the position of a page in the table of contents, or in the contents of its folder."""
        linked = []
        for list_page in (CONTENTS, *(f"Docs/{folder}/README.md" for folder in GROUPS.values())):
            for line in self.pages[list_page].lines if list_page in self.pages else ():
                for match in LINK.finditer(line):
                    path = (ROOT / list_page).parent.joinpath(match[3].partition("#")[0]).resolve()
                    if path.is_relative_to(ROOT):
                        linked.append(str(path.relative_to(ROOT)))
        return {path: index for index, path in reversed(list(enumerate(linked)))}

    def is_in_no_group(self, page):
        folders = tuple(f"Docs/{folder}/" for folder in GROUPS.values())
        return not page.path.startswith(folders) and page.path not in (FRONT, OVERVIEW, CONTENTS) and not is_first(page)


def with_reference(text, modules):
    """Returns the front page with links to the libraries at its end, after “Where to begin”.

    The libraries are not topics of the front page, because DocC would then show them without their content.
    """
    reference = f"Reference: {', '.join(f'``/{module}``' for module in modules)}. {WITHOUT_REFERENCE}"
    return f"{text.rstrip()}\n\n{reference}\n"


def is_first(page):
    return Path(page.path).parent == Path("Docs") and page.path not in (FRONT, CONTENTS)


def pages_of_repository():
    paths = [ROOT / OVERVIEW, *sorted((ROOT / "Docs").glob("**/*.md")), *(ROOT / name for name in ABOUT)]
    names = [str(path.relative_to(ROOT)) for path in paths if path.exists()]
    return [name for name in names if not name.startswith(INTERNAL)]


def read_page(path):
    # A removed comment leaves its line breaks, so that problems are reported with the correct lines.
    text = (ROOT / path).read_text(encoding="utf-8")
    page = Page(path, name_of(path), with_whole_links(without_comments(text)).split("\n"))
    is_code, counts = False, {}
    for line in page.lines:
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code and (match := HEADING.match(line)):
            words = plain(match[2])
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            count = counts[slug] = counts.get(slug, -1) + 1
            page.anchors[slug if count == 0 else f"{slug}-{count}"] = fragment(words)
    return page


def with_whole_links(text):
    """Returns the text with each link in one line. The number of lines stays the same, except after a link that ends a line."""
    parts = re.split(r"(^\s*```.*?^\s*```[^\n]*$)", text, flags=re.S | re.M)
    parts[::2] = [WRAPPED.sub(in_one_line, part) for part in parts[::2]]
    return "".join(parts)


def in_one_line(link):
    return f"[{link[1]} {link[2]}]({link[3]}){link[4]}" + ("\n" if link[5] else "")


def name_of(path):
    """Returns the name of a page in the catalog, from its file name and, unless it is a guide, its folder name."""
    if path == FRONT:
        return "OperationKit"
    if path == OVERVIEW:
        return "About"
    parts = Path(path).with_suffix("").parts[1:] or (Path(path).stem,)
    if parts[-1] == "README":
        return "-".join(parts[:-1]) or "Contents"
    return "-".join(parts[1:] if parts[0] == "Guides" else parts)


def without_comments(text):
    parts = re.split(r"(^[ \t]*```.*?^[ \t]*```[ \t]*$)", text, flags=re.S | re.M)
    return "".join(
        part if index % 2 else COMMENT.sub(lambda match: "\n" * match[0].count("\n"), part)
        for index, part in enumerate(parts))


def plain(words):
    """Returns the text of a heading without markup."""
    return LINK.sub(lambda match: match[2], words).replace("`", "").replace("**", "")


def plain_heading(line):
    match = HEADING.match(line)
    return f"{match[1]} {plain(match[2])}"


def fragment(words):
    """Returns the URL fragment of a heading in DocC."""
    words = re.sub(r"[\"'’“”`]", "", words.strip())
    return quote(re.sub(r"[\s]+", "-", words), safe="-_.,:;!?=+~*$&@/")
