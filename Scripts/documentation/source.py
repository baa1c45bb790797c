"""Adds the files of the repository to which pages link and which are not pages themselves, such as tests, as plain text."""

import html
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = "source"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} | OperationKit</title>
<link rel="icon" href="{base}/favicon.svg">
<style>
  :root {{ color-scheme: light dark }}
  body {{ margin: 0; font: 16px/1.5 -apple-system, "Segoe UI", Roboto, sans-serif }}
  main {{ padding: 1.2rem }} h1 {{ font-size: 1.1rem; overflow-wrap: anywhere }}
  pre {{ overflow-x: auto; font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace }}
  a {{ color: #0f766e }} @media (prefers-color-scheme: dark) {{ a {{ color: #5eead4 }} }}
</style>
</head>
<body>
{header}
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""


def address(path):
    """Returns the URL of a file, relative to the site. Some servers do not serve folders that begin with a period."""
    return f"{FOLDER}/{path.lstrip('.')}/"


def write(site, paths, base, header):
    """Writes a page for each file, and for each folder a list of its files."""
    for path in sorted(paths):
        file = ROOT / path
        if file.is_dir():
            children = sorted(str(child.relative_to(ROOT)) for child in file.iterdir() if not child.name.startswith("."))
            items = (f'<li><a href="{base}/{address(child)}">{html.escape(child)}</a></li>' for child in children)
            content = f"<ul>{''.join(items)}</ul>"
            write(site, children, base, header)
        else:
            content = f"<pre>{html.escape(file.read_text(encoding='utf-8', errors='replace'))}</pre>"
        folder = site / address(path)
        folder.mkdir(parents=True, exist_ok=True)
        page = PAGE.format(title=html.escape(path), base=base, header=header, content=content)
        (folder / "index.html").write_text(page, encoding="utf-8")
