"""Tries the check on small modules whose problems are known."""

import tempfile
from pathlib import Path

from .checks import check, check_members
from .swift_names import SwiftFile
from .table import BadTable, read_table

TABLE = """
module House
imports Foundation
floor Roof: what is above
floor Cellar: what is below | Shed: beside it
"""
ALLOWED = "upward Cellar names Tile of Roof: the drain begins there\n"

# The content of the room Cellar, and the expected problems. Roof contains `struct Tile`, and Shed contains `struct Rake`.
CELLARS = {
    "struct Drain { let from: Tile }": ["Cellar/Drain.swift:1: Cellar names Tile of Roof"],
    "\n\nfunc drain(_ rake: Rake) {}": ["Cellar/Drain.swift:3: Cellar names Rake of Shed"],
    'let words = "a \\(Tile.self) b"': ["Cellar/Drain.swift:1: Cellar names Tile of Roof"],
    'let words = #"a \\(Tile.self) b"#': [],
    'let words = """\n  Tile " \\("x \\(1)") Tile\n  """\nlet tile: Tile?': ["Cellar/Drain.swift:4: Cellar names Tile"],
    "// Tile\n/* Tile /* Tile */ Tile */\n/// ``Tile``\nlet one = 1": [],
    "let drain = Pipe.Tile": [],
    "struct Box<Tile> { let tile: Tile }": [],
    "enum Drain { struct Tile {}\n static let tile = Tile() }": [],
    "import Network\n": ["Cellar/Drain.swift:1: House may not import Network"],
    "private struct Tile {}\nlet tile = Tile()": [],
}


def run():
    failures = []
    for cellar, expected in CELLARS.items():
        failures += compare(repr(cellar), problems(cellar, TABLE), expected)
    failures += compare("allowed", problems("let tile: Tile?", TABLE + ALLOWED), [])
    needless = problems("let one = 1", TABLE + ALLOWED)
    failures += compare("not needed", needless, ["the table lets Cellar name Tile of Roof"])
    kept = TABLE + "kept pipe in Shed: water is dear\n"
    failures += compare("kept", problems("let a = pipe", kept), ["Cellar/Drain.swift:1: pipe is kept in Shed"])
    renamed = problems("", TABLE.replace("Roof", "Attic"))
    failures += compare("no floor", renamed, ["no floor for House/Roof", "House/Attic"])
    lines = ("floor Roof: twice", "upward Roof names Drain of Cellar: lower", "upward Cellar names Tile of Roof", "x")
    for bad in lines:
        try:
            read_table(TABLE + bad, "table")
            failures.append(f"the table was read, with: {bad}")
        except BadTable:
            pass
    failures += compare("member", members(TABLE), ["Cellar/Drain.swift:7: Cellar uses lift of Roof"])
    failures += compare("allowed member", members(TABLE + "upward Cellar names lift of Roof: a pump\n"), [])
    needless = members(TABLE + "upward Cellar names lift, lower of Roof: a pump\n")
    failures += compare("member not needed", needless, ["the table lets Cellar use lower of Roof"])
    text = "#if os(Linux)\nimport Glibc\n#endif\nimport struct Foundation.URL\n@testable import Core"
    imports = SwiftFile(text).imports
    failures += [] if imports == [("Glibc", 2), ("Foundation", 4), ("Core", 5)] else [f"imports: {imports}"]
    text = "actor A { private enum B {}; class func c() {} }\ntypealias D = A\n// struct E\nimport struct F.G\nlet h = \"class I\""
    types = SwiftFile(text).types
    failures += [] if types == 2 else [f"types: {types}"]
    print(*failures, sep="\n", end="\n" if failures else "")
    print("self-test:", "FAILED" if failures else "all well")
    return 1 if failures else 0


def problems(cellar, table):
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "Sources/House"
        for name, text in {
            "Roof/Tile.swift": "public struct Tile { let rake: Rake? }",
            "Shed/Rake.swift": "struct Rake {}",
            "Cellar/Drain.swift": cellar,
        }.items():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_text(text)
        return check(read_table(table, "table")[0], Path(folder))[0]


def members(table):
    root = Path("/house")
    drain, tile = root / "Sources/House/Cellar/Drain.swift", root / "Sources/House/Roof/Tile.swift"
    seen = [(drain, 7, "lift", tile), (tile, 8, "drain", drain), (root / "Sources/Other/A/B.swift", 9, "lift", tile)]
    return check_members(read_table(table, "table")[0], root, seen)


def compare(name, found, expected):
    if len(found) == len(expected) and all(part in line for part, line in zip(expected, found)):
        return []
    return [f"{name}: expected {expected}, found {found}"]
