"""Reads the table of layers, `Docs/Design/layers.txt`, whose header describes its format."""

import re


class BadTable(Exception):
    pass


class Module:
    """A library, with its allowed imports, its layers from top to bottom, and the exceptions to their order."""

    def __init__(self, name):
        self.name = name
        self.imports = set()
        self.floors = []  # lists of rooms, each with its description
        self.upward = {}  # (room, other room) to (names, why)
        self.kept = []  # (words, rooms, why)

    def height(self, room):
        """Returns the height of a room above the lowest layer, or None if the table does not contain the room."""
        for index, floor in enumerate(self.floors):
            if any(name == room for name, _ in floor):
                return len(self.floors) - index
        return None

    @property
    def rooms(self):
        return [name for floor in self.floors for name, _ in floor]


def read_table(text, place):
    modules = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            try:
                read_line(line, modules)
            except (BadTable, ValueError, IndexError) as problem:
                raise BadTable(f"{place}:{number}: {problem or 'not understood'}: {line}") from None
    return modules


def read_line(line, modules):
    key, _, rest = line.partition(" ")
    if key == "module":
        modules.append(Module(rest.strip()))
        return
    module = modules[-1]
    if key == "imports":
        module.imports |= set(rest.split())
    elif key == "floor":
        floor = []
        for part in rest.split("|"):
            room, words = (half.strip() for half in part.split(":", 1))
            if room in module.rooms or any(room == name for name, _ in floor):
                raise BadTable("a room stands there twice")
            floor.append((room, words))
        module.floors.append(floor)
    elif key == "upward":
        match = re.fullmatch(r"(\S+) names (.+?) of (\S+): (\S.+)", rest)
        if not match:
            raise BadTable("say `upward ROOM names NAME, NAME of ROOM: why`")
        room, names, other, why = match.groups()
        if module.height(room) is None or module.height(other) is None:
            raise BadTable("an unknown room")
        if module.height(other) < module.height(room):
            raise BadTable("that room is lower: it may be named anyway")
        module.upward[room, other] = (set(names.split(", ")), why)
    elif key == "kept":
        match = re.fullmatch(r"(.+?) in (.+?): (\S.+)", rest)
        if not match:
            raise BadTable("say `kept WORD, WORD in ROOM, ROOM: why`")
        words, rooms, why = match.groups()
        module.kept.append((set(words.split(", ")), set(rooms.split(", ")), why))
    else:
        raise BadTable("an unknown word")
