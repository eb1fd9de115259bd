#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words.py ROOT: the rules for comments and pages that a pattern can find in the tree ROOT.

It prints one line "file:line: what is wrong" for each breach and exits with 1 if there is one:

1. A comment does not begin with "What", "Who", "That which" or "Of": it says first what a thing is
   or does, with a noun or a verb.
2. No phrase of AVOIDED: each has a plain counterpart.
3. A sentence has at most 30 words.

EXCEPTIONS names the sentences that may stay, each with its reason.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

from house import is_source, tree_files

MAX_WORDS = 30
BEGINS = re.compile(r"(What|Who|That which|Of)\b")
AVOIDED = {
    r"\b(?:is|are) no\b(?! (?:longer|more|less|later|earlier|fewer|smaller|larger|slower)\b)":
        'say what it is, or "is not a ..."',
    r"\b(?:is|are) none\b": "say what holds",
    r"\bbecomes? of\b": "say what is done with it, and by which function",
    r"\bcomes? of\b": "say what causes it",
}
# Parts of sentences that may stay: each is a text of others, or the shortest way to say it.
EXCEPTIONS = ()

# A comment, or a literal, which may hold what looks like one.
C_COMMENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
# A list's item, a heading and a line of code begin a paragraph of their own.
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.|#+|\||>)\s")


def joined(lines):
    """Blocks of adjacent lines as (number of the first line, lines), from (number, text) pairs."""
    blocks = []
    for number, text in lines:
        if blocks and number == blocks[-1][0] + len(blocks[-1][1]):
            blocks[-1][1].append(text)
        else:
            blocks.append((number, [text]))
    return blocks


def c_comments(text):
    """Blocks of comments; one behind code is a block of its own."""
    own, behind = [], []
    for match in C_COMMENT.finditer(text):
        found = match.group(0)
        first = text.count("\n", 0, match.start()) + 1
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        lines = []
        if found.startswith("//"):
            lines = [re.sub(r"^///?<?\s?", "", found)]
        elif found.startswith("/*"):
            lines = [re.sub(r"^\s*\*+\s?", "", line) for line in found[2:-2].split("\n")]
        (own if alone else behind).extend(enumerate(lines, first))
    return joined(own) + [(number, [said]) for number, said in behind]


def python_comments(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    blocks = joined((token.start[0], token.string.lstrip("#").removeprefix(" "))
                    for token in tokens if token.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and ast.get_docstring(node):
            blocks.append((node.body[0].lineno, node.body[0].value.value.split("\n")))
    return blocks


def hash_comments(text):
    return joined((number, line.strip().lstrip("#").removeprefix(" "))
                  for number, line in enumerate(text.splitlines(), 1)
                  if line.strip().startswith("#") and not line.startswith("#!"))


def page(text):
    """All that is not a block of code."""
    lines, code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("    "):
            lines.append((number, line))
    return joined(lines)


def blocks_of(path, text):
    if path.suffix == ".md":
        return page(text)
    if path.suffix in {".h", ".c", ".cpp", ".cu", ".cuh", ".js"}:
        return c_comments(text)
    if path.suffix == ".py":
        return python_comments(text)
    return hash_comments(text) if path.suffix in {".sh", ".cmake", ".txt", ""} else []


def sentences(block):
    """(line, sentence) of a block. An empty line, an item and a cell of a table end a sentence."""
    first, lines = block
    words, begun = [], first
    for number, line in enumerate(lines, first):
        if words and (not line.strip() or ITEM.match(line)):
            yield begun, " ".join(words)
            words = []
        for word in line.replace("|", " | ").split():
            begun = begun if words else number
            words.append(word)
            if word == "|" or re.search(r"[.!?:;][\"')*`]*$", word):
                yield begun, " ".join(words)
                words = []
    if words:
        yield begun, " ".join(words)


def breaches(path, text):
    for block in blocks_of(path, text):
        if path.suffix != ".md":
            if BEGINS.match(" ".join(block[1]).lstrip()):
                yield block[0], "a comment begins with a noun or a verb: " + block[1][0].strip()
        for number, sentence in sentences(block):
            if any(part in sentence for part in EXCEPTIONS):
                continue
            for phrase, instead in AVOIDED.items():
                if match := re.search(phrase, sentence):
                    yield number, f'"{match.group(0)}": {instead}'
            count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if count > MAX_WORDS:
                yield number, f"a sentence of {count} words, at most {MAX_WORDS}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root, wrong = Path(sys.argv[1]), 0
    for path in tree_files(root):
        if not (is_source(path) or path.suffix == ".md"):
            continue
        for number, why in breaches(path, (root / path).read_text(encoding="utf-8")):
            print(f"{path}:{number}: {why}")
            wrong += 1
    if wrong:
        sys.exit(1)
    print("The rules of words are kept.")


if __name__ == "__main__":
    main()
