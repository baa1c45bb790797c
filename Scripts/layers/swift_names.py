"""Reads the names in a Swift file: the names that it declares for its module, and the names that it uses.

The reader is a lexer. It skips comments, including nested comments, and the text of strings, including raw and multiline
strings, but not interpolations. It does not resolve types, so it finds names of types, but not members.
"""

import re
from bisect import bisect_right

TOKEN = re.compile(r'(//[^\n]*)|(/\*)|(#*"(?:"")?)|(`?[^\W\d]\w*`?)|\S')
COMMENT_EDGE = re.compile(r"/\*|\*/")
DECLARING = {"struct", "class", "enum", "protocol", "actor", "typealias"}
NOT_A_NAME = {"func", "var", "let", "subscript", "override", "init"}


class SwiftFile:
    """The names in one file, with their lines."""

    def __init__(self, text):
        self.line_starts = [0] + [match.end() for match in re.finditer("\n", text)]
        self.tokens = list(tokens(text))
        self.imports = []  # (module, line)
        self.declared = set()  # the types at the top level, which are visible in the whole module
        self.types = 0  # the number of types, including nested and private types, but without type aliases
        self.hidden = set()  # nested types, private types and generic parameters, which are visible only in this file
        self.read_declarations()

    def line(self, position):
        return bisect_right(self.line_starts, position)

    def read_declarations(self):
        depth = 0
        words = [word for _, word in self.tokens]
        for index, (position, word) in enumerate(self.tokens):
            if word in "{}":
                depth += 1 if word == "{" else -1
            following = words[index + 1] if index + 1 < len(words) else ""
            before = words[index - 1] if index else ""
            if word == "import" and depth == 0 and before != ".":
                # In `import struct Foundation.URL`, the module is the second name.
                module = words[index + 2] if following in DECLARING | NOT_A_NAME else following
                self.imports.append((module, self.line(position)))
            elif word in DECLARING and before != "." and following.isidentifier() and following not in NOT_A_NAME:
                self.types += word != "typealias" and before != "import"
                is_hidden = depth > 0 or before in ("private", "fileprivate")
                (self.hidden if is_hidden else self.declared).add(following)
                self.hidden |= parameters(words, index + 2)
            elif word in ("func", "init", "subscript") and before != ".":
                self.hidden |= parameters(words, index + (1 if word != "func" else 2))

    def said(self):
        """Returns the used names that begin with a capital letter, with their positions, except names of members."""
        words = [word for _, word in self.tokens]
        for index, (position, word) in enumerate(self.tokens):
            if not word[0].isupper() or word in self.hidden:
                continue
            is_member = index > 0 and words[index - 1] == "."
            if not is_member or (index > 1 and words[index - 2].startswith("Operation")):
                yield word, self.line(position)


def parameters(words, index):
    """Returns the generic parameters that follow the name of a declaration."""
    names = set()
    if index >= len(words) or words[index] != "<":
        return names
    depth, expects = 0, False
    for word in words[index : index + 200]:
        if word == "<":
            depth += 1
        elif word == ">":
            depth -= 1
        if expects and word.isidentifier() and word != "each":
            names.add(word)
        expects = depth == 1 and (word in ("<", ",") or (expects and word == "each"))
        if depth == 0:
            return names
    return names


def tokens(text):
    """Returns (position, word) for each word of a text, without comments and the text of strings."""
    position = 0
    interpolations = []  # for each open interpolation: [open brackets in it, end of the enclosing string, its hashes]
    while match := TOKEN.search(text, position):
        comment, block, quotes, name = match.groups()
        position = match.end()
        if comment:
            continue
        if block:
            position = after_block_comment(text, position)
            continue
        if quotes:
            hashes = quotes.rstrip('"')
            ending = quotes[len(hashes) :] + hashes
            position, is_interpolated = after_words(text, position, ending, hashes)
            if is_interpolated:
                interpolations.append([0, ending, hashes])
            continue
        word = match[0]
        if interpolations and word in "()":
            open_brackets, ending, hashes = interpolations[-1]
            if word == ")" and open_brackets == 0:
                position, is_interpolated = after_words(text, position, ending, hashes)
                if not is_interpolated:
                    interpolations.pop()
                continue
            interpolations[-1][0] += 1 if word == "(" else -1
        yield match.start(), (name or word).strip("`")


def after_block_comment(text, position):
    depth = 1
    while depth and (match := COMMENT_EDGE.search(text, position)):
        depth += 1 if match[0] == "/*" else -1
        position = match.end()
    return len(text) if depth else position


def after_words(text, position, ending, hashes):
    """Returns where the text of a string ends, and whether an interpolation ends it."""
    escape = "\\" + hashes
    while position < len(text):
        if text.startswith(ending, position):
            return position + len(ending), False
        if text.startswith(escape, position):
            position += len(escape)
            if text.startswith("(", position):
                return position + 1, True
        position += 1
    return position, False
