"""Tries the check on small modules whose problems are known."""

import tempfile
from pathlib import Path

from .checks import check, check_members
from .swift_names import SwiftFile
from .table import BadTable, read_table

TABLE = """
module Library
imports Foundation
layer Top: the upper code
layer Bottom: the lower code | Side: in the same layer
"""
ALLOWED = "upward Bottom uses Tile of Top: the drain begins there\n"

# The content of the folder Bottom, and the expected problems. Top contains `struct Tile`, and Side contains `struct Rake`.
BOTTOMS = {
    "struct Drain { let from: Tile }": ["Bottom/Drain.swift:1: Bottom uses Tile of Top"],
    "\n\nfunc drain(_ rake: Rake) {}": ["Bottom/Drain.swift:3: Bottom uses Rake of Side"],
    'let words = "a \\(Tile.self) b"': ["Bottom/Drain.swift:1: Bottom uses Tile of Top"],
    'let words = #"a \\(Tile.self) b"#': [],
    'let words = """\n  Tile " \\("x \\(1)") Tile\n  """\nlet tile: Tile?': ["Bottom/Drain.swift:4: Bottom uses Tile"],
    "// Tile\n/* Tile /* Tile */ Tile */\n/// ``Tile``\nlet one = 1": [],
    "let drain = Pipe.Tile": [],
    "struct Box<Tile> { let tile: Tile }": [],
    "enum Drain { struct Tile {}\n static let tile = Tile() }": [],
    "import Network\n": ["Bottom/Drain.swift:1: Library may not import Network"],
    "private struct Tile {}\nlet tile = Tile()": [],
}


def run():
    failures = []
    for bottom, expected in BOTTOMS.items():
        failures += compare(repr(bottom), problems(bottom, TABLE), expected)
    failures += compare("allowed", problems("let tile: Tile?", TABLE + ALLOWED), [])
    needless = problems("let one = 1", TABLE + ALLOWED)
    failures += compare("not needed", needless, ["the table lets Bottom use Tile of Top"])
    reserved = TABLE + "reserved pipe in Side: water is expensive\n"
    failures += compare("reserved", problems("let a = pipe", reserved), ["Bottom/Drain.swift:1: pipe is reserved for Side"])
    renamed = problems("", TABLE.replace("Top", "Upper"))
    failures += compare("no layer", renamed, ["no layer for Library/Top", "Library/Upper"])
    lines = ("layer Top: twice", "upward Top uses Drain of Bottom: lower", "upward Bottom uses Tile of Top", "x")
    for bad in lines:
        try:
            read_table(TABLE + bad, "table")
            failures.append(f"the table was read, with: {bad}")
        except BadTable:
            pass
    failures += compare("member", members(TABLE), ["Bottom/Drain.swift:7: Bottom uses lift of Top"])
    failures += compare("allowed member", members(TABLE + "upward Bottom uses lift of Top: a pump\n"), [])
    needless = members(TABLE + "upward Bottom uses lift, lower of Top: a pump\n")
    failures += compare("member not needed", needless, ["the table lets Bottom use lower of Top"])
    text = "#if os(Linux)\nimport Glibc\n#endif\nimport struct Foundation.URL\n@testable import Core"
    imports = SwiftFile(text).imports
    failures += [] if imports == [("Glibc", 2), ("Foundation", 4), ("Core", 5)] else [f"imports: {imports}"]
    text = "actor A { private enum B {}; class func c() {} }\ntypealias D = A\n// struct E\nimport struct F.G\nlet h = \"class I\""
    types = SwiftFile(text).types
    failures += [] if types == 2 else [f"types: {types}"]
    print(*failures, sep="\n", end="\n" if failures else "")
    print("self-test:", "FAILED" if failures else "passed")
    return 1 if failures else 0


def problems(bottom, table):
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "Sources/Library"
        for name, text in {
            "Top/Tile.swift": "public struct Tile { let rake: Rake? }",
            "Side/Rake.swift": "struct Rake {}",
            "Bottom/Drain.swift": bottom,
        }.items():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_text(text)
        return check(read_table(table, "table")[0], Path(folder))[0]


def members(table):
    root = Path("/package")
    drain, tile = root / "Sources/Library/Bottom/Drain.swift", root / "Sources/Library/Top/Tile.swift"
    seen = [(drain, 7, "lift", tile), (tile, 8, "drain", drain), (root / "Sources/Other/A/B.swift", 9, "lift", tile)]
    return check_members(read_table(table, "table")[0], root, seen)


def compare(name, found, expected):
    if len(found) == len(expected) and all(part in line for part, line in zip(expected, found)):
        return []
    return [f"{name}: expected {expected}, found {found}"]
