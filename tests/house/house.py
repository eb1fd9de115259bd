#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house.py ROOT: checks the house rules in the sources of the tree ROOT.

It prints one line "file:line: what is wrong" for each breach and exits with 1 if there is one:

1. A room includes only itself and the rooms that stand before it in its folder's list; one format
   or codec does not include another. A public header belongs to the room that defines it: the room
   of the source with its name, or the one that DEFINED_IN gives. If it includes a header of a later
   room, it belongs to that room. Any room may include the folder's other public headers, such as
   those that sources on the folder's top level define.
2. Only its own folder and the tests of that folder include a private header. Only folders that
   build on its folder include a public header.
3. A source has at most 400 lines of at most 100 characters. Pages have the same limit of
   characters, except for the rows of tables.
4. A room holds at most 30 sources, any folder at most 35 files.
5. The front page has at most 1,500 words, all README.md pages together at most 15,000.
6. A source does not compare HWY_TARGET with the name of an instruction set, because the next
   version of Highway has further ones. It uses the vector's size instead. HWY_SCALAR and
   HWY_EMU128, which have no vectors, may be named.
7. Two sources of the product do not define types of the same name in one namespace: the linker
   would use the functions of either (the one-definition rule). Unnamed namespaces do not count.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

# The rooms of each folder from the ground up. A file's name stands for that file on its folder's
# top level, "*" for all other files there. "<codec>" stands for all other rooms at its place,
# whatever their names. These do not include each other.
ROOMS = {
    "loader": ["base", "dataset", "dataset/packed", "dataset/values", "dataset/<format>",
               "dataset/open", "cache", "order", "runtime", "device", "report",
               "pipeline/options", "pipeline/slots", "pipeline/planning",
               "pipeline/samples", "pipeline"],
    "decode": ["codec", "<codec>", "jpeg/progressive", "jpeg/decoder", "coefficients",
               "crops", "*"],
    "augment": ["geometry", "resample", "pixels", "ops", "ops/colour", "ops/warp", "ops/policy",
                "targets", "*"],
    "gpu": ["pixel", "device"],
    "bench": ["measure/text", "measure/machine", "measure/page", "measure/device", "measure/bench",
              "measure/diagnose", "measure/tune", "command/console", "command/device",
              "command/run", "command/dataset/annotations", "command/dataset/images",
              "command/dataset", "command/image", "micro", "command", "c"],
}
# The folders whose public headers a folder may include. All others (bench, examples, tests) may
# include all.
BUILDS_ON = {"loader": [], "decode": ["loader"], "augment": ["loader", "decode"],
             "gpu": ["loader", "decode"]}
# The rooms of public headers whose functions are in sources of other names.
DEFINED_IN = {
    "loader": {
        "millrace/detail/usable_memory.h": "runtime",
        "millrace/report.h": "report",
        "millrace/detail/tar_members.h": "dataset/tar",
    },
}
CXX = {".h", ".c", ".cpp", ".cu", ".cuh"}
OTHER_SOURCES = {".py", ".sh", ".js", ".css", ".cmake", ".html", ".json", ".in"}
SOURCES_BY_NAME = {"CMakeLists.txt", ".ci/run"}
MAX_LINES, MAX_COLUMNS, MAX_SOURCES, MAX_FILES = 400, 100, 30, 35
MAX_WORDS, MAX_WORDS_OF_PAGES = 1500, 15000
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

NAMED_TARGET = re.compile(r"\bHWY_TARGET\s*[=!<>]=?\s*(?!HWY_(SCALAR|EMU128)\b)\w")

NAMESPACE = re.compile(r"(?:inline )?namespace\b\s*(?:MILLRACE_API\s+)?([\w:]*)\s*\{")
TYPE = re.compile(
    r"(?:class|struct|union|enum class|enum)\s+(?:MILLRACE_\w+\s+)?(\w+)[^;:]*(?::[^:;]*)?\{"
)


def is_source(path):
    if str(path).startswith("bench/results/"):
        return False  # measured values
    return (
        path.suffix in CXX | OTHER_SOURCES
        or path.name in SOURCES_BY_NAME
        or str(path) in SOURCES_BY_NAME
    )


def tree_files(root):
    """All existing files that git tracks or would add, relative to `root`."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "--deduplicate"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        names = output.split("\n")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(PurePosixPath(name) for name in names if name and (root / name).is_file())


def position(rooms, room):
    """The position of `room` in a folder's list; None if it is not listed."""
    if room in rooms:
        return rooms.index(room)
    parent = PurePosixPath(room).parent
    for number, name in enumerate(rooms):
        if name.endswith(">") and PurePosixPath(name).parent == parent:
            return number
    return None


def place(path):
    """(folder, position of the room in the folder's list, name of the room), position None if it is
    not in the list."""
    folder, inside = path.parts[0], PurePosixPath(*path.parts[1:])
    rooms = ROOMS[folder]
    if "include" in inside.parts:
        return folder, 0, "include"
    if len(inside.parts) > 1:
        room = str(inside.parent)
    else:
        room = "*" if "*" in rooms and inside.name not in rooms else inside.name
    return folder, position(rooms, room), room


class House:
    def __init__(self, root):
        self.root, self.files = root, tree_files(root)
        self.known = set(self.files)
        self.breaches = []
        self.types = {}  # where each is defined first
        # The public headers of each folder, by the names by which they are included.
        self.public = {folder: {} for folder in ROOMS}
        for path in self.files:
            if path.parts[0] in ROOMS and "include" in path.parts:
                name = PurePosixPath(*path.parts[path.parts.index("include") + 1 :])
                self.public[path.parts[0]][str(name)] = path
        self.rooms_of_public = {}  # by header
        self.words = 0  # of all README.md pages

    def breach(self, path, line, text):
        self.breaches.append(f"{path}:{line}: {text}")

    def check(self):
        for path in self.files:
            if is_source(path) or path.suffix == ".md":
                lines = (self.root / path).read_text(encoding="utf-8").splitlines()
                self.check_size(path, lines)
                if path.suffix in CXX:
                    self.check_room(path)
                    self.check_includes(path, lines)
                    self.check_targets(path, lines)
                    if path.parts[0] in ROOMS:
                        self.check_types(path, lines)
        self.check_folders()
        if self.words > MAX_WORDS_OF_PAGES:
            pages = f"{self.words} words in all README.md pages, at most {MAX_WORDS_OF_PAGES}"
            self.breach("README.md", 1, pages)
        return self.breaches

    def check_size(self, path, lines):
        page = path.suffix == ".md"
        if len(lines) > MAX_LINES and not page:
            self.breach(path, MAX_LINES + 1, f"{len(lines)} lines, at most {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS and not (page and line.startswith("|")):
                self.breach(path, number, f"{len(line)} characters, at most {MAX_COLUMNS}")
        words = sum(len(line.split()) for line in lines)
        if path.name == "README.md":
            self.words += words
        if str(path) == "README.md" and words > MAX_WORDS:
            self.breach(path, len(lines), f"{words} words, at most {MAX_WORDS}")

    def check_room(self, path):
        if path.parts[0] in ROOMS and place(path)[1] is None:
            self.breach(path, 1, f"{place(path)[2]} is not in house.py's list of {path.parts[0]}/")

    def check_includes(self, path, lines):
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.match(line):
                kind, name = match.groups()
                wrong = (self.wrong_public if kind == "<" else self.wrong_private)(path, name)
                if wrong:
                    self.breach(path, number, f"{name} is {wrong}")

    def check_targets(self, path, lines):
        for number, line in enumerate(lines, 1):
            if NAMED_TARGET.search(line):
                self.breach(path, number, "HWY_TARGET is compared with the name of a target")

    def check_types(self, path, lines):
        """Finds types defined twice. Formatted sources have them at the start of a line."""
        spaces = []
        for number, line in enumerate(lines, 1):
            if match := NAMESPACE.match(line):
                spaces.append(match.group(1))
            elif line.startswith("}  // namespace"):
                spaces.pop()
            elif (match := TYPE.match(line)) and "" not in spaces:
                name = "::".join([*spaces, match.group(1)])
                first = self.types.setdefault(name, path)
                if first != path:
                    self.breach(path, number, f"{name} is defined in {first}, too")

    def wrong_public(self, path, name):
        """Reason why the public header `name` may not be included; None if it may."""
        folder = path.parts[0]
        for owner in ROOMS:
            if name in self.public[owner]:
                if folder in BUILDS_ON and owner not in [folder, *BUILDS_ON[folder]]:
                    return f"a header of {owner}/, on which {folder}/ does not build"
                if folder == owner and "include" not in path.parts:
                    _, own, room = place(path)
                    return self.wrong_room(folder, own, room, self.room_of_public(folder, name))
        return None

    def room_of_public(self, folder, name):
        """The last of the rooms that define the public header `name` and those that it includes;
        None if no room does."""
        header = self.public[folder][name]
        if header not in self.rooms_of_public:
            self.rooms_of_public[header] = None  # a header may lead back to itself
            rooms = [DEFINED_IN.get(folder, {}).get(name)]
            rooms += [
                place(path)[2]
                for path in self.files
                if path.parts[0] == folder
                and path.stem == header.stem
                and path.suffix in {".cpp", ".cu"}
                and place(path)[1] is not None
            ]
            for line in (self.root / header).read_text(encoding="utf-8").splitlines():
                match = INCLUDE.match(line)
                if match and match.group(2) in self.public[folder]:
                    rooms.append(self.room_of_public(folder, match.group(2)))
            listed = [room for room in rooms if room not in (None, "*")]
            self.rooms_of_public[header] = max(
                listed, key=lambda room: position(ROOMS[folder], room), default=None
            )
        return self.rooms_of_public[header]

    @staticmethod
    def wrong_room(folder, own, room, other_room):
        """Reason why `room`, at position `own` of the folder's list, may not include a header of
        `other_room`; None if it may."""
        other = None if other_room is None else position(ROOMS[folder], other_room)
        if own is not None and other is not None and other > own:
            return f"in {folder}/'s room {other_room}, which stands behind {room}"
        if own is not None and own == other and other_room not in (room, "include"):
            return f"in {folder}/'s room {other_room}, which stands beside {room}"
        return None

    def wrong_private(self, path, name):
        """Reason why the private header `name` may not be included; None if it may."""
        folder = path.parts[0]
        if folder == "tests":
            # The allowed headers are those of the tested folder, of all tests, of the test's own
            # folder, and of tests/gpu. The latter has the stand-in for CUDA, with which programs of
            # other folders are tested, too.
            tested = path.parts[1]
            if any(
                self.find(base, name) for base in (tested, "tests", f"tests/{tested}", "tests/gpu")
            ):
                return None
        elif target := self.find(folder, name):
            if folder not in ROOMS:
                return None
            if "include" in path.parts:
                return "private, and the including header is public"
            _, own, room = place(path)
            return self.wrong_room(folder, own, room, place(target)[2])
        for owner in [*ROOMS, "examples", "tests"]:
            if self.find(owner, name):
                return f"a private header of {owner}/"
        return "not there: a private header is included with its room"

    def find(self, base, name):
        """The header `name` of the folder `base`, or the file that it is generated from; None if
        both are missing."""
        for candidate in (PurePosixPath(base, name), PurePosixPath(base, f"{name}.in")):
            if candidate in self.known:
                return candidate
        return None

    def check_folders(self):
        files = Counter(path.parent for path in self.files)
        sources = Counter(path.parent for path in self.files if is_source(path))
        for folder, count in files.items():
            room = len(folder.parts) > 1 and "include" not in folder.parts
            if room and sources[folder] > MAX_SOURCES:
                self.breach(
                    folder, 1, f"{sources[folder]} sources, at most {MAX_SOURCES} in a room"
                )
            elif count > MAX_FILES:
                self.breach(folder, 1, f"{count} files, at most {MAX_FILES} in a folder")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: house.py ROOT")
    breaches = House(Path(sys.argv[1]).resolve()).check()
    print("\n".join(breaches) if breaches else "The rules of the house are kept.")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
