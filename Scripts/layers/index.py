"""Reads the references to declarations, including members, from the index of a debug build.

The compiler writes the index, and libIndexStore of the toolchain reads it. The index contains only code that was compiled on this
platform, without code in an `#if` for other platforms.
"""

import ctypes
import shutil
import subprocess
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

DEFINITION, REFERENCE = 1 << 1, 1 << 2
RECORD = 2


class Text(ctypes.Structure):
    _fields_ = [("start", c_void_p), ("count", c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.start, self.count).decode() if self.count else ""


EACH_TEXT = CFUNCTYPE(c_bool, c_void_p, Text)
EACH = CFUNCTYPE(c_bool, c_void_p, c_void_p)
FUNCTIONS = {
    "store_create": (c_void_p, [c_char_p, POINTER(c_void_p)]),
    "store_units_apply_f": (c_bool, [c_void_p, c_uint, c_void_p, EACH_TEXT]),
    "unit_reader_create": (c_void_p, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "unit_reader_dispose": (None, [c_void_p]),
    "unit_reader_get_main_file": (Text, [c_void_p]),
    "unit_reader_dependencies_apply_f": (c_bool, [c_void_p, c_void_p, EACH]),
    "unit_dependency_get_kind": (c_uint, [c_void_p]),
    "unit_dependency_get_name": (Text, [c_void_p]),
    "unit_dependency_get_filepath": (Text, [c_void_p]),
    "record_reader_create": (c_void_p, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "record_reader_dispose": (None, [c_void_p]),
    "record_reader_occurrences_apply_f": (c_bool, [c_void_p, c_void_p, EACH]),
    "occurrence_get_symbol": (c_void_p, [c_void_p]),
    "occurrence_get_roles": (c_uint64, [c_void_p]),
    "occurrence_get_line_col": (None, [c_void_p, POINTER(c_uint), POINTER(c_uint)]),
    "symbol_get_usr": (Text, [c_void_p]),
    "symbol_get_name": (Text, [c_void_p]),
}


class NoIndex(Exception):
    """The reason why no usable index exists."""


def references(root):
    """Returns (file, line, name, file of its declaration) for each reference from one file of Sources to another."""
    index = Index(root)
    homes, found = {}, []
    for path, records in index.files():
        for record in records:
            for identifier, name, line, roles in index.occurrences(record):
                if roles & DEFINITION:
                    homes[identifier] = path
                elif roles & REFERENCE and ":" not in name.split("(")[0]:  # other names are getters and setters
                    found.append((path, line, name, identifier))
    return [
        (path, line, name, homes[identifier])
        for path, line, name, identifier in found
        if homes.get(identifier, path) != path
    ]


class Index:
    def __init__(self, root):
        self.root = root
        self.library = load_library()
        stores = sorted((root / ".build").glob("*/debug/index/store"))
        if not stores:
            raise NoIndex("the package was not built yet")
        self.folder = stores[0]
        self.problem = c_void_p()
        self.store = self.call("store_create", str(self.folder).encode(), byref(self.problem))
        if not self.store:
            raise NoIndex("the index cannot be opened")

    def call(self, name, *arguments):
        return getattr(self.library, f"indexstore_{name}")(*arguments)

    def files(self):
        """Returns each file of Sources in the build, with the names of its records."""
        sources = {str(path) for path in (self.root / "Sources").rglob("*.swift")}
        known = {}
        for unit in self.units():
            reader = self.call("unit_reader_create", self.store, unit.encode(), byref(self.problem))
            if not reader:
                continue
            path = str(self.call("unit_reader_get_main_file", reader))
            written = next(self.folder.glob(f"v*/units/{unit}")).stat().st_mtime
            if path in sources and written > known.get(path, (0,))[0]:
                known[path] = (written, self.records(reader, path))
            self.call("unit_reader_dispose", reader)
        old = [path for path in sources if Path(path).stat().st_mtime > known.get(path, (0,))[0]]
        if old:
            raise NoIndex(f"{len(old)} files were changed after the build, for example {Path(sorted(old)[0]).name}")
        return [(Path(path), records) for path, (_, records) in sorted(known.items())]

    def units(self):
        names = []
        self.call("store_units_apply_f", self.store, 0, None, EACH_TEXT(lambda _, name: names.append(str(name)) or True))
        return names

    def records(self, reader, path):
        names = []

        def note(_, part):
            is_record = self.call("unit_dependency_get_kind", part) == RECORD
            if is_record and str(self.call("unit_dependency_get_filepath", part)) == path:
                names.append(str(self.call("unit_dependency_get_name", part)))
            return True

        self.call("unit_reader_dependencies_apply_f", reader, None, EACH(note))
        return names

    def occurrences(self, record):
        found, texts = [], {}
        reader = self.call("record_reader_create", self.store, record.encode(), byref(self.problem))
        if not reader:
            return found

        def note(_, occurrence):
            symbol = self.call("occurrence_get_symbol", occurrence)
            if symbol not in texts:
                texts[symbol] = (
                    str(self.call("symbol_get_usr", symbol)), str(self.call("symbol_get_name", symbol)))
            line, column = c_uint(), c_uint()
            self.call("occurrence_get_line_col", occurrence, byref(line), byref(column))
            found.append((*texts[symbol], line.value, self.call("occurrence_get_roles", occurrence)))
            return True

        self.call("record_reader_occurrences_apply_f", reader, None, EACH(note))
        self.call("record_reader_dispose", reader)
        return found


def load_library():
    is_mac = sys.platform == "darwin"
    found = subprocess.run(["xcrun", "--find", "swift"], capture_output=True, text=True).stdout.strip() if is_mac else None
    swift = found or shutil.which("swift")
    if not swift:
        raise NoIndex("PATH contains no swift")
    path = Path(swift).resolve().parent.parent / "lib" / ("libIndexStore.dylib" if is_mac else "libIndexStore.so")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as problem:
        raise NoIndex(f"the toolchain has no library that reads the index: {problem}") from None
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, f"indexstore_{name}")
        function.restype, function.argtypes = result, arguments
    return library
