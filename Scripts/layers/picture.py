"""Draws the table of layers as an SVG with the layers of each library, their folders, and the exceptions.

The picture works on light and dark pages, because it has its own background, and its colors follow the reader's setting.
"""

import html
import re
import textwrap

WIDTH, MARGIN, GAP, SIGN = 980, 24, 8, 128
FOLDER_WIDTH = WIDTH - 2 * MARGIN - SIGN
LINE, NAME, PAD = 16, 136, 12
# The longest part of a name that fits beside the folders.
LONGEST = 12
STYLE = """
    .ground { fill: #fbfaf8 } .library { fill: #f1eee9; stroke: #d9d3ca }
    .folder { fill: #ffffff; stroke: #b9c4cf } .sign { fill: #3d4852 }
    .name { fill: #12496f; font-weight: 600; font-size: 14px } .words { fill: #3d4852; font-size: 12px }
    .up { fill: #9a4a12; font-size: 11.5px } .title { fill: #1f262d; font-weight: 700; font-size: 15px }
    .arrow { stroke: #8a97a3; stroke-width: 1.5; fill: none } .tip { fill: #8a97a3 }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #16191d } .library { fill: #1f2429; stroke: #363e46 }
      .folder { fill: #2a3037; stroke: #4a5560 } .sign { fill: #b6c0c9 }
      .name { fill: #8cc8f0 } .words { fill: #c8d0d8 }
      .up { fill: #f0a878 } .title { fill: #eef2f5 }
      .arrow { stroke: #77838f } .tip { fill: #77838f }
    }
"""


def picture(modules):
    parts, top = [], MARGIN
    for index, module in enumerate(modules):
        if index:
            parts.append(arrow(top))
            top += 34
        drawn, height = library(module, top)
        parts += drawn
        top += height
    names = " above ".join(module.name for module in modules)
    top += 34
    parts.append(text(MARGIN, top - 10, "words", "A folder uses only itself and lower layers. "))
    legend = "▲ exceptions: names of higher layers that the folder uses, for the reason in layers.txt"
    parts.append(text(MARGIN + 258, top - 10, "up", legend))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 8}" width="{WIDTH}" height="{top + 8}" '
        f'font-family="-apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="The layers of {names}">\n<style>{STYLE}</style>\n'
        f'<rect class="ground" width="{WIDTH}" height="{top + 8}" rx="10"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def library(module, top):
    parts, y = [], top + 16
    for layer in module.layers:
        width = (FOLDER_WIDTH - GAP * len(layer)) / len(layer)
        folders = [folder_lines(module, name, words, width) for name, words in layer]
        height = LINE * max(len(lines) for lines in folders) + PAD + 4
        for index, ((name, _), lines) in enumerate(zip(layer, folders)):
            x = MARGIN + SIGN + index * (width + GAP)
            parts.append(f'<rect class="folder" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="5"/>')
            parts.append(text(x + PAD, y + 20, "name", name))
            for number, (kind, line) in enumerate(lines):
                parts.append(text(x + NAME, y + 19.5 + LINE * number, kind, line))
        y += height + GAP
    # The name of a library with only one layer may need more height than this layer.
    words = module.name.removeprefix("Operation")
    titles = ["Operation", *(re.findall("[A-Z][a-z]+", words) if len(words) > LONGEST else [words])]
    height = max(y - top + 6, 36 + 19 * len(titles) - 8)
    place = f'x="{MARGIN - 8}" y="{top}" width="{WIDTH - 2 * MARGIN + 16}" height="{height}"'
    ground = f'<rect class="library" {place} rx="8"/>'
    sign = [text(MARGIN + 6, top + 36 + 19 * number, "title", line) for number, line in enumerate(titles)]
    return [ground, *sign, *parts], height


def folder_lines(module, folder, words, width):
    lines = [("words", line) for line in textwrap.wrap(words, int((width - NAME - PAD) / 5.8))]
    upward = [
        f"{', '.join(sorted(names))} ({other})" for (here, other), (names, _) in module.upward.items() if here == folder
    ]
    if upward:
        lines += [("up", line) for line in textwrap.wrap("▲ " + " · ".join(upward), int((width - NAME - PAD) / 5.8))]
    return lines


def arrow(top):
    x = MARGIN + SIGN + FOLDER_WIDTH / 2
    return (
        f'<path class="arrow" d="M{x:.0f},{top + 6} v16"/><path class="tip" d="M{x - 5:.0f},{top + 21} h10 l-5,8 z"/>'
        + text(x + 14, top + 22, "words", "imports")
    )


def text(x, y, kind, words):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(words)}</text>'
