#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py text ROOT, or pages.py commands ROOT MILLRACE PHOTOS: checks the pages of ROOT.

text: each name in a code span occurs in the sources; each link leads to a file; each C++ block is
part of a compiled source; each script of a shell block exists.
commands: the command lines of each page's console blocks ("$ ...") end with 0. They run one after
the other in a new folder that contains only `photos`, a folder of pictures.

It prints one line "file:line: what is wrong" for each fault and exits with 1 if there is one.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"```(\w*)$")
SPAN = re.compile(r"`((?:[^`\n]|\n(?!\n))+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
NAME = re.compile(r"[A-Za-z_]\w{2,}")
CODE = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".json", ".js", ".css", ".in"}
COMMAND_SECONDS = 100


class Page:
    """A page's text with empty lines in place of its fenced blocks, and the blocks as (language,
    number of the first line, lines)."""

    def __init__(self, path):
        self.path, self.text, self.blocks = path, "", []
        block = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            fence = FENCE.match(line)
            if block is not None and fence:
                self.blocks.append(block)
                block = None
            elif fence:
                block = (fence.group(1), number + 1, [])
            elif block is not None:
                block[2].append(line)
            self.text += ("" if block or fence else line) + "\n"

    def found(self, pattern):
        """Yields the matches of the pattern's group in the text, with their lines."""
        for match in pattern.finditer(self.text):
            yield self.text.count("\n", 0, match.start()) + 1, match.group(1)

    def commands(self):
        """Yields the command lines of the console blocks with their first line numbers."""
        for language, number, lines in self.blocks:
            command = None
            for offset, line in enumerate(lines if language == "console" else []):
                if line.startswith("$ "):
                    command = (number + offset, line[2:])
                elif command:
                    command = (command[0], command[1] + "\n" + line)
                if command and not command[1].endswith("\\"):
                    yield command
                    command = None


def project_files(root):
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "--deduplicate"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [root / name for name in output.split("\n") if name and (root / name).is_file()]


def pages_of(files):
    return [Page(path) for path in files if path.suffix == ".md"]


def squeezed(lines):
    """Code without indentation and empty lines, to find it in any context."""
    return "\n".join(line.strip() for line in lines if line.strip()) + "\n"


def check_text(root):
    files = project_files(root)
    sources = [path.read_text(encoding="utf-8") for path in files
               if path.suffix in CODE or path.name == "run"]
    words = {word for source in sources for word in NAME.findall(source)}
    words |= {word for path in files for word in NAME.findall(str(path.relative_to(root)))}
    compiled = [squeezed(path.read_text(encoding="utf-8").splitlines()) for path in files
                if path.suffix in {".cpp", ".h", ".cu"}]
    for page in pages_of(files):
        for number, span in page.found(SPAN):
            for name in NAME.findall(span):
                if name not in words:
                    yield page.path, number, f"`{name}` is in no source"
        for number, link in page.found(LINK):
            if not (page.path.parent / link).exists():
                yield page.path, number, f"{link} is not there"
        for language, number, lines in page.blocks:
            if language == "cpp" and not any(squeezed(lines) in source for source in compiled):
                yield page.path, number, "this C++ stands in no source that is compiled"
            for script in re.findall(r"bash ([a-z]\S+\.sh)", "\n".join(lines)):
                if language == "sh" and not (root / script).exists():
                    yield page.path, number, f"{script} is not there"


def check_commands(root, millrace, photos):
    environment = {**os.environ, "PATH": f"{millrace.parent}:{os.environ['PATH']}"}
    for page in pages_of(project_files(root)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "photos").symlink_to(photos)
            for number, command in page.commands():
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      timeout=COMMAND_SECONDS)
                if done.returncode != 0:
                    wrong = f"`{command}` ended with {done.returncode}:\n{done.stdout}"
                    yield page.path, number, wrong


def main():
    what, root = sys.argv[1], Path(sys.argv[2]).resolve()
    if what == "text":
        faults = check_text(root)
    else:
        faults = check_commands(root, *(Path(argument).resolve() for argument in sys.argv[3:5]))
    count = 0
    for count, (path, number, text) in enumerate(faults, 1):
        print(f"{path.relative_to(root)}:{number}: {text}", flush=True)
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
