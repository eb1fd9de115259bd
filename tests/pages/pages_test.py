#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests pages.py: each made-up project has a page with one error, which must be reported."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PAGES = Path(__file__).with_name("pages.py")
PAGE = """# Made up

`Loader::next()` is in [loader](loader/loader.h), and so `$NOT --option` is.

```cpp
  Loader loader;
  loader.next();
```

```console
$ made-up pack photos \\
  out
packed
$ test -e out
```

```sh
bash run.sh
```

```text
$ false
```
"""


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("loader/loader.h", "struct Loader { void next(); };  // --option NOT\n")
        self.write("example.cpp", "int main() {\n    Loader loader;\n\n    loader.next();\n}\n")
        self.write("run.sh", "")
        self.write("photos/one.jpg", "")
        self.write("bin/made-up", '#!/bin/sh\ntest "$1" = pack && test -e "$2" && touch "$3"\n')
        (self.root / "bin/made-up").chmod(0o755)

    def write(self, name, text):
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(text)

    def check(self, what, page):
        self.write("README.md", page)
        arguments = [self.root / "bin/made-up", self.root / "photos"] if what == "commands" else []
        done = subprocess.run([sys.executable, PAGES, what, self.root, *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_all_is_so(self):
        self.assertEqual(self.check("text", PAGE), (0, ""))
        self.assertEqual(self.check("commands", PAGE), (0, ""))

    def test_a_name_that_no_source_has(self):
        self.assertEqual(self.check("text", PAGE.replace("::next", "::last")),
                         (1, "README.md:3: `last` is in no source\n"))

    def test_a_link_to_nothing(self):
        self.assertEqual(self.check("text", PAGE.replace("(loader/", "(slots/")),
                         (1, "README.md:3: slots/loader.h is not there\n"))

    def test_code_that_is_not_compiled(self):
        self.assertEqual(self.check("text", PAGE.replace("  Loader loader", "  auto loader")),
                         (1, "README.md:6: this C++ stands in no source that is compiled\n"))

    def test_a_script_that_is_missing(self):
        self.assertEqual(self.check("text", PAGE.replace("bash run", "bash walk")),
                         (1, "README.md:18: walk.sh is not there\n"))

    def test_a_command_that_fails(self):
        self.assertEqual(self.check("commands", PAGE.replace("$ test -e out", "$ echo no; exit 3")),
                         (1, "README.md:14: `echo no; exit 3` ended with 3:\nno\n\n"))

    def test_a_command_of_two_lines_that_fails(self):
        code, output = self.check("commands", PAGE.replace("pack photos", "unpack photos"))
        self.assertEqual(code, 1)
        self.assertIn("README.md:11: `made-up unpack photos \\\n  out` ended with 1:\n", output)
        self.assertIn("README.md:14: `test -e out` ended with 1:\n", output)


if __name__ == "__main__":
    unittest.main()
