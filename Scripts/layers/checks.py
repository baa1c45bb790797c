"""Compares the sources of a module with the table of layers."""

from collections import defaultdict

from .swift_names import SwiftFile

GROUND = "."  # the files directly in the folder of the module


def check(module, root):
    """Returns the problems of a module as lines, and the names that its folders use of each other: (folder, other) to names."""
    sources = root / "Sources" / module.name
    if not sources.is_dir():
        return [f"the table lists the module {module.name}, but Sources does not contain it"], {}
    files = {path: SwiftFile(path.read_text(encoding="utf-8")) for path in sorted(sources.rglob("*.swift"))}
    folders = {path: folder_of(path.relative_to(sources)) for path in files}
    problems = problems_of_folders(module, set(folders.values()))
    home = {name: folders[path] for path, file in files.items() for name in file.declared}
    between = defaultdict(set)
    for path, file in files.items():
        place = path.relative_to(root)
        problems += problems_of_words(module, folders[path], file, place)
        for name, line in file.said():
            other = home.get(name, folders[path])
            if other == folders[path] or name in file.declared:
                continue
            between[folders[path], other].add(name)
            if not may_use(module, folders[path], other, name):
                problems.append(f"{place}:{line}: {folders[path]} uses {name} of {other}, which is not in a lower layer")
    for (folder, other), (names, _) in module.upward.items():
        for name in sorted(name for name in names - between[folder, other] if name[0].isupper()):
            problems.append(f"the table lets {folder} use {name} of {other}, but {folder} does not use it: remove the exception")
    return problems, between


def check_members(module, root, references):
    """Returns the problems of a module with members, which code can use without the name of their type.

    If the table has an exception for two folders, the exception also applies to the members of the named types.
    """
    problems, used = [], set()
    for path, line, name, folder, other in between_folders(module, root, references):
        used.add((folder, other, name))
        if folder != other and (folder, other) not in module.upward and not may_use(module, folder, other, name):
            place = path.relative_to(root)
            problems.append(f"{place}:{line}: {folder} uses {name} of {other}, which is not in a lower layer")
    for (folder, other), (names, _) in module.upward.items():
        for name in sorted(name for name in names if not name[0].isupper() and (folder, other, name) not in used):
            problems.append(f"the table lets {folder} use {name} of {other}, but {folder} does not use it: remove the exception")
    return problems


def between_folders(module, root, references):
    """Returns each reference between folders of a module: (file, line, name, its folder, folder of its declaration)."""
    sources = root / "Sources" / module.name
    for path, line, name, home in references:
        if path.is_relative_to(sources) and home.is_relative_to(sources):
            yield path, line, name, folder_of(path.relative_to(sources)), folder_of(home.relative_to(sources))


def folder_of(path):
    return path.parts[0] if len(path.parts) > 1 else GROUND


def problems_of_folders(module, found):
    known = set(module.folders)
    lacking = [f"the table lists no layer for {module.name}/{folder}" for folder in sorted(found - known - {GROUND})]
    gone = [f"the table lists {module.name}/{folder}, which does not exist" for folder in sorted(known - found)]
    return lacking + gone


def problems_of_words(module, folder, file, place):
    problems = [
        f"{place}:{line}: {module.name} may not import {name}: the table of layers does not list this import"
        for name, line in file.imports
        if name not in module.imports
    ]
    for words, folders, why in module.reserved:
        if folder not in folders:
            problems += [
                f"{place}:{file.line(position)}: {word} is reserved for {', '.join(sorted(folders))}: {why}"
                for position, word in file.tokens
                if word in words
            ]
    return problems


def may_use(module, folder, other, name):
    here, there = module.height(folder), module.height(other)
    if GROUND in (folder, other) or here is None or there is None or there < here:
        return True
    return name in module.upward.get((folder, other), (set(), ""))[0]
