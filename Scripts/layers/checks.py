"""Compares the sources of a module with the table of layers."""

from collections import defaultdict

from .swift_names import SwiftFile

GROUND = "."  # the files directly in the module's folder, outside its rooms


def check(module, root):
    """Returns the problems of a module as lines, and the names that its rooms use of each other: (room, other) to names."""
    folder = root / "Sources" / module.name
    if not folder.is_dir():
        return [f"the table has a module {module.name}, and Sources has none"], {}
    files = {path: SwiftFile(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.swift"))}
    rooms = {path: room_of(path.relative_to(folder)) for path in files}
    problems = problems_of_rooms(module, set(rooms.values()))
    home = {name: rooms[path] for path, file in files.items() for name in file.declared}
    between = defaultdict(set)
    for path, file in files.items():
        place = path.relative_to(root)
        problems += problems_of_words(module, rooms[path], file, place)
        for name, line in file.said():
            other = home.get(name, rooms[path])
            if other == rooms[path] or name in file.declared:
                continue
            between[rooms[path], other].add(name)
            if not may_name(module, rooms[path], other, name):
                problems.append(f"{place}:{line}: {rooms[path]} names {name} of {other}, which is no lower")
    for (room, other), (names, _) in module.upward.items():
        for name in sorted(name for name in names - between[room, other] if name[0].isupper()):
            problems.append(f"the table lets {room} name {name} of {other}, and it does not: take that out")
    return problems, between


def check_members(module, root, references):
    """Returns the problems of a module with members, which code can use without the name of their type.

    If the table has an exception for two rooms, the exception also applies to the members of the named types.
    """
    problems, used = [], set()
    for path, line, name, room, other in between_rooms(module, root, references):
        used.add((room, other, name))
        if room != other and (room, other) not in module.upward and not may_name(module, room, other, name):
            place = path.relative_to(root)
            problems.append(f"{place}:{line}: {room} uses {name} of {other}, which is no lower")
    for (room, other), (names, _) in module.upward.items():
        for name in sorted(name for name in names if not name[0].isupper() and (room, other, name) not in used):
            problems.append(f"the table lets {room} use {name} of {other}, and it does not: take that out")
    return problems


def between_rooms(module, root, references):
    """Returns each reference between rooms of a module: (file, line, name, its room, room of its declaration)."""
    folder = root / "Sources" / module.name
    for path, line, name, home in references:
        if path.is_relative_to(folder) and home.is_relative_to(folder):
            yield path, line, name, room_of(path.relative_to(folder)), room_of(home.relative_to(folder))


def room_of(path):
    return path.parts[0] if len(path.parts) > 1 else GROUND


def problems_of_rooms(module, found):
    known = set(module.rooms)
    lacking = [f"the table has no floor for {module.name}/{room}" for room in sorted(found - known - {GROUND})]
    gone = [f"the table has a floor for {module.name}/{room}, which is gone" for room in sorted(known - found)]
    return lacking + gone


def problems_of_words(module, room, file, place):
    problems = [
        f"{place}:{line}: {module.name} may not import {name}: the table of the layers does not list it"
        for name, line in file.imports
        if name not in module.imports
    ]
    for words, rooms, why in module.kept:
        if room not in rooms:
            problems += [
                f"{place}:{file.line(position)}: {word} is kept in {', '.join(sorted(rooms))}: {why}"
                for position, word in file.tokens
                if word in words
            ]
    return problems


def may_name(module, room, other, name):
    here, there = module.height(room), module.height(other)
    if GROUND in (room, other) or here is None or there is None or there < here:
        return True
    return name in module.upward.get((room, other), (set(), ""))[0]
