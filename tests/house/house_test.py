#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests house.py: each made-up tree breaks one rule once, and the breach must be reported."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from house import House

# A tree that keeps all rules, with an include of every allowed kind.
SOUND = {
    "README.md": "word " * 15 + "\n| a table's row may be long |" + " x" * 60 + "\n",
    "loader/include/millrace/pipeline.h": "#include <millrace/error.h>\n",
    "loader/include/millrace/error.h": "#include <string>\n",
    "loader/base/mutex.h": "#include <mutex>\n",
    "loader/pipeline/slots.h": '#include <millrace/pipeline.h>\n#include "base/mutex.h"\n',
    "loader/pipeline/slots.cpp": '#include "pipeline/slots.h"\n',
    "loader/dataset/packed/pages.h": "",
    "augment/ops/flip.h": "#include <millrace/error.h>\n",
    "augment/recipe.cpp": '#include "ops/flip.h"\n',
    "bench/measure/include/millrace/measure.h": "#include <millrace/pipeline.h>\n",
    "bench/measure/page/assets.h.in": "",
    "bench/measure/page/page.cpp": '#include <millrace/measure.h>\n'
    '  #  include "measure/page/assets.h"\n',
    "bench/command/console/command.h": "#include <millrace/pipeline.h>\n",
    "bench/command/main.cpp": '#include "command/console/command.h"\n'
    '#include "measure/page/page.h"\n',
    "bench/measure/page/page.h": "",
    "examples/trainer.h": "#include <millrace/pipeline.h>\n",
    "examples/train.cpp": '#include "trainer.h"\n',
    "tests/support/waiting.h": "",
    "tests/loader/order/drawn.h": "",
    "tests/loader/slots_test.cpp": '#include "base/mutex.h"\n#include "order/drawn.h"\n',
    "tests/decode/jpeg_test.cpp": '#include "support/waiting.h"\n',
    "tests/gpu/stand_in/cuda.h": "",
    "tests/examples/train_test.cpp": '#include "trainer.h"\n#include "stand_in/cuda.h"\n',
    "loader/base/hundred.cpp": "é" * 100 + "\n" * 400,
    "LICENSE": "x" * 101,
}


class Rules(unittest.TestCase):
    def expect(self, changes, *breaches):
        """Expects `breaches` of the correct tree with `changes`, a dict of contents by path."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder), SOUND | changes)
            self.assertEqual(House(Path(folder)).check(), list(breaches))

    @staticmethod
    def write(root, files):
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")

    def test_a_sound_tree(self):
        self.expect({})

    def test_a_room_that_stands_behind(self):
        self.expect(
            {"loader/base/error.cpp": '#include <string>\n#include "pipeline/slots.h"\n'},
            "loader/base/error.cpp:2: pipeline/slots.h is in loader/'s room pipeline, which "
            "stands behind base",
        )

    def test_a_room_within_a_room_stands_behind_it(self):
        self.expect(
            {"loader/dataset/open.cpp": '#include "dataset/packed/pages.h"\n'},
            "loader/dataset/open.cpp:1: dataset/packed/pages.h is in loader/'s room "
            "dataset/packed, which stands behind dataset",
        )

    def test_a_file_on_top_stands_behind_rooms(self):
        self.expect(
            {"augment/json.h": "", "augment/ops/crop.cpp": '#include "json.h"\n'},
            "augment/ops/crop.cpp:1: json.h is in augment/'s room *, which stands " "behind ops",
        )

    def test_a_room_that_is_in_no_list(self):
        self.expect(
            {"loader/lmdb/schema.cpp": ""},
            "loader/lmdb/schema.cpp:1: lmdb is not in house.py's list of loader/",
        )

    def test_one_format_in_another(self):
        self.expect(
            {"loader/dataset/a/a.cpp": '#include "dataset/b/b.h"\n', "loader/dataset/b/b.h": ""},
            "loader/dataset/a/a.cpp:1: dataset/b/b.h is in loader/'s room dataset/b, which "
            "stands beside dataset/a",
        )

    def test_a_room_in_that_of_a_format(self):
        self.expect(
            {"loader/dataset/tar/deep/x.cpp": ""},
            "loader/dataset/tar/deep/x.cpp:1: dataset/tar/deep is not in house.py's list of "
            "loader/",
        )

    def test_one_codec_in_another(self):
        self.expect(
            {
                "decode/bmp/bmp.h": "",
                "decode/bmp/bmp.cpp": '#include "bmp/bmp.h"\n#include "codec/exif.h"\n',
                "decode/codec/exif.h": "",
                "decode/gif/gif.cpp": '#include "bmp/bmp.h"\n',
                "decode/image.cpp": '#include "bmp/bmp.h"\n',
            },
            "decode/gif/gif.cpp:1: bmp/bmp.h is in decode/'s room bmp, which stands beside gif",
        )

    def test_a_file_on_top_that_is_in_no_list(self):
        self.expect(
            {"bench/text.h": ""}, "bench/text.h:1: text.h is not in house.py's list of bench/"
        )

    def test_a_private_header_of_another_folder(self):
        self.expect(
            {"bench/measure/page/bars.cpp": '\n#include "base/mutex.h"\n'},
            "bench/measure/page/bars.cpp:2: base/mutex.h is a private header of loader/",
        )

    def test_a_private_header_of_a_folder_that_is_not_tested(self):
        includes = '#include "ops/flip.h"\n#include "base/mutex.h"\n'
        self.expect(
            {"tests/augment/flip_test.cpp": includes},
            "tests/augment/flip_test.cpp:2: base/mutex.h is a private header of loader/",
        )

    def test_a_header_of_the_tests_outside_of_them(self):
        self.expect(
            {"examples/other.cpp": '#include "support/waiting.h"\n'},
            "examples/other.cpp:1: support/waiting.h is a private header of tests/",
        )

    def test_a_private_header_in_a_public_one(self):
        self.expect(
            {"loader/include/millrace/batch.h": '#include "base/mutex.h"\n'},
            "loader/include/millrace/batch.h:1: base/mutex.h is private, and the including "
            "header is public",
        )

    def test_a_header_without_its_room(self):
        self.expect(
            {"loader/pipeline/engine.cpp": '#include "slots.h"\n'},
            "loader/pipeline/engine.cpp:1: slots.h is not there: a private header is "
            "included with its room",
        )

    def test_a_public_header_of_a_room_that_stands_behind(self):
        self.expect(
            {
                "loader/include/millrace/runtime.h": "",
                "loader/include/millrace/hints.h": "#include <millrace/runtime.h>\n",
                "loader/runtime/runtime.cpp": "#include <millrace/runtime.h>\n",
                "loader/pipeline/engine.cpp": "#include <millrace/hints.h>\n",
                "loader/dataset/hints.cpp": "#include <millrace/runtime.h>\n",
                "loader/dataset/packed/hints_writer.cpp": "\n#include <millrace/hints.h>\n",
            },
            "loader/dataset/hints.cpp:1: millrace/runtime.h is in loader/'s room runtime, which "
            "stands behind dataset",
            "loader/dataset/packed/hints_writer.cpp:2: millrace/hints.h is in loader/'s room "
            "runtime, which stands behind dataset/packed",
        )

    def test_a_public_header_that_sources_of_other_names_define(self):
        self.expect(
            {
                "loader/include/millrace/report.h": "",
                "loader/order/state.cpp": "#include <millrace/report.h>\n",
            },
            "loader/order/state.cpp:1: millrace/report.h is in loader/'s room report, which "
            "stands behind order",
        )

    def test_a_public_header_of_another_format(self):
        self.expect(
            {
                "loader/include/millrace/tar_names.h": "",
                "loader/dataset/tar/tar_names.cpp": "#include <millrace/tar_names.h>\n",
                "loader/dataset/files/list.cpp": "#include <millrace/tar_names.h>\n",
            },
            "loader/dataset/files/list.cpp:1: millrace/tar_names.h is in loader/'s room "
            "dataset/tar, which stands beside dataset/files",
        )

    def test_a_public_header_of_a_folder_above(self):
        self.expect(
            {
                "augment/include/millrace/recipe.h": "",
                "decode/image.cpp": "#include <millrace/recipe.h>\n",
            },
            "decode/image.cpp:1: millrace/recipe.h is a header of augment/, on which "
            "decode/ does not build",
        )

    def test_a_long_source(self):
        for name in [
            "loader/base/x.cpp",
            "gpu/pixel/x.cu",
            "tests/x.py",
            "cmake/x.sh",
            "bench/measure/page/x.js",
            "bench/measure/page/x.css",
            "cmake/x.cmake",
            "CMakeLists.txt",
            ".ci/run",
        ]:
            self.expect({name: "\n" * 401}, f"{name}:401: 401 lines, at most 400")

    def test_a_long_line_counted_in_characters(self):
        for name in ["loader/base/x.h", "gpu/pixel/x.cuh", "gpu/CMakeLists.txt", "gpu/README.md"]:
            self.expect({name: "\n\n" + "é" * 101 + "\n"}, f"{name}:3: 101 characters, at most 100")

    def test_a_long_front_page(self):
        self.expect(
            {"README.md": "a word\n" * 750 + "more\n"}, "README.md:751: 1501 words, at most 1500"
        )

    def test_the_name_of_a_target(self):
        wrong = "HWY_TARGET is compared with the name of a target"
        self.expect(
            {
                "augment/ops/flip.h": "#if HWY_TARGET == HWY_AVX3\n#elif HWY_TARGET <= HWY_AVX2\n"
                "#if HWY_TARGET != HWY_SCALAR\n#elif HWY_TARGET == HWY_EMU128\n"
            },
            f"augment/ops/flip.h:1: {wrong}",
            f"augment/ops/flip.h:2: {wrong}",
        )

    def test_two_types_of_one_name(self):
        space = "namespace millrace {\n%s {\n};\n}  // namespace millrace\n"
        self.expect(
            {
                "augment/ops/flip.h": space % "struct Box",
                "augment/recipe.cpp": space % "class Box final : public Shape"
                + "namespace millrace {\nnamespace {\nstruct Box {};\n}  // namespace\n"
                "struct Box;\nstruct Box::Level {};\n}  // namespace millrace\n",
            },
            "augment/recipe.cpp:2: millrace::Box is defined in augment/ops/flip.h, too",
        )

    def test_a_full_room(self):
        self.expect(
            {f"loader/order/x{n}.cpp": "" for n in range(31)},
            "loader/order:1: 31 sources, at most 30 in a room",
        )

    def test_long_pages(self):
        pages = {"README.md": 1000, "loader/README.md": 7000, "decode/README.md": 7001}
        changes = {name: "word\n" * words for name, words in pages.items()}
        self.expect(changes, "README.md:1: 15001 words in all README.md pages, at most 15000")

    def test_a_full_folder(self):
        self.expect(
            {f"examples/x{n}.txt": "" for n in range(34)},
            "examples:1: 36 files, at most 35 in a folder",
        )

    def test_the_command(self):
        command = [sys.executable, Path(__file__).with_name("house.py")]
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder), SOUND)
            sound = subprocess.run([*command, folder], capture_output=True, text=True)
            self.write(Path(folder), {"bench/text.h": ""})
            broken = subprocess.run([*command, folder], capture_output=True, text=True)
        self.assertEqual(sound.returncode, 0)
        self.assertEqual(sound.stdout, "The rules of the house are kept.\n")
        self.assertEqual(broken.returncode, 1)
        self.assertEqual(
            broken.stdout, "bench/text.h:1: text.h is not in house.py's list of bench/\n"
        )
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 1)

    def test_git_names_the_files(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder), SOUND | {".gitignore": "/build/\n", "build/x.cpp": "\n" * 401})
            subprocess.run(["git", "init", "-q", folder], check=True)
            self.assertEqual(House(Path(folder)).check(), [])


if __name__ == "__main__":
    unittest.main()
