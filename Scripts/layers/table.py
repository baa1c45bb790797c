"""Reads the table of layers, `Docs/Design/layers.txt`, whose header describes its format."""

import re


class BadTable(Exception):
    pass


class Module:
    """A library, with its allowed imports, its layers from top to bottom, and the exceptions to their order."""

    def __init__(self, name):
        self.name = name
        self.imports = set()
        self.layers = []  # lists of folders, each with its description
        self.upward = {}  # (folder, other folder) to (names, why)
        self.reserved = []  # (words, folders, why)

    def height(self, folder):
        """Returns the height of a folder above the lowest layer, or None if the table does not contain the folder."""
        for index, layer in enumerate(self.layers):
            if any(name == folder for name, _ in layer):
                return len(self.layers) - index
        return None

    @property
    def folders(self):
        return [name for layer in self.layers for name, _ in layer]


def read_table(text, place):
    modules = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            try:
                read_line(line, modules)
            except (BadTable, ValueError, IndexError) as problem:
                raise BadTable(f"{place}:{number}: {problem or 'not valid'}: {line}") from None
    return modules


def read_line(line, modules):
    key, _, rest = line.partition(" ")
    if key == "module":
        modules.append(Module(rest.strip()))
        return
    module = modules[-1]
    if key == "imports":
        module.imports |= set(rest.split())
    elif key == "layer":
        layer = []
        for part in rest.split("|"):
            folder, words = (half.strip() for half in part.split(":", 1))
            if folder in module.folders or any(folder == name for name, _ in layer):
                raise BadTable("the table lists a folder twice")
            layer.append((folder, words))
        module.layers.append(layer)
    elif key == "upward":
        match = re.fullmatch(r"(\S+) uses (.+?) of (\S+): (\S.+)", rest)
        if not match:
            raise BadTable("expected `upward FOLDER uses NAME, NAME of FOLDER: reason`")
        folder, names, other, why = match.groups()
        if module.height(folder) is None or module.height(other) is None:
            raise BadTable("an unknown folder")
        if module.height(other) < module.height(folder):
            raise BadTable("the other folder is in a lower layer and needs no exception")
        module.upward[folder, other] = (set(names.split(", ")), why)
    elif key == "reserved":
        match = re.fullmatch(r"(.+?) in (.+?): (\S.+)", rest)
        if not match:
            raise BadTable("expected `reserved WORD, WORD in FOLDER, FOLDER: reason`")
        words, folders, why = match.groups()
        module.reserved.append((set(words.split(", ")), set(folders.split(", ")), why))
    else:
        raise BadTable("an unknown keyword")
