#!/usr/bin/env python3
"""The include checker finds what it exists to find: one forbidden line in a small tree each time."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_includes

HEADERS = ["src/base/result.h", "src/kernels/ops.h", "src/checkpoint/checkpoint.h", "src/text/tokenizer.h", "src/model/model.h",
           "src/engine/engine.h", "src/serve/http.h", "src/grammar/grammar.h", "src/decode/params.h", "apps/commands.h"]


class CheckIncludes(unittest.TestCase):
    def complaints(self, path, line):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name in HEADERS:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("#pragma once\n")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"// a file\n{line}\n")
            return check_includes.check(root)[1]

    def assert_allowed(self, path, *lines):
        for line in lines:
            self.assertEqual(self.complaints(path, line), [], (path, line))

    def assert_forbidden(self, path, *lines):
        for line in lines:
            found = self.complaints(path, line)
            self.assertEqual(len(found), 1, (path, line))
            self.assertTrue(found[0].startswith(path), found)

    def test_downwards_is_allowed(self):
        self.assert_allowed("src/model/a.cpp", '#include "model/model.h"', '#include "kernels/ops.h"', '#include "base/result.h"', "#include <vector>")
        self.assert_allowed("src/engine/a.cpp", '#include "model/model.h"', '#include "text/tokenizer.h"', '#include "grammar/grammar.h"')
        self.assert_allowed("apps/a.cpp", '#include "serve/http.h"', '#include "commands.h"', "#include <CLI/CLI.hpp>")

    def test_upwards_and_sideways_are_not(self):
        self.assert_forbidden("src/base/a.h", '#include "kernels/ops.h"')
        self.assert_forbidden("src/model/a.cpp", '#include "engine/engine.h"', '#include "text/tokenizer.h"', '#include "checkpoint/checkpoint.h"')
        self.assert_forbidden("src/text/a.cpp", '#include "grammar/grammar.h"', '#include "decode/params.h"', '  #  include "checkpoint/checkpoint.h"')
        self.assert_forbidden("src/serve/a.cpp", '#include "model/model.h"', '#include "checkpoint/checkpoint.h"', '#include "apps/commands.h"')

    def test_only_load_sees_files(self):
        self.assert_allowed("src/engine/load.cpp", '#include "checkpoint/checkpoint.h"')
        self.assert_allowed("src/engine/load_text.cpp", '#include "checkpoint/checkpoint.h"')
        self.assert_forbidden("src/engine/engine.cpp", '#include "checkpoint/checkpoint.h"')

    def test_third_party_stays_in_its_room(self):
        self.assert_allowed("src/text/a.cpp", "#include <pcre2.h>", "#include <utf8proc.h>")
        self.assert_allowed("src/base/thread_team.cpp", "#include <immintrin.h>")
        self.assert_forbidden("src/base/a.cpp", "#include <immintrin.h>", "#include <pcre2.h>")
        self.assert_forbidden("src/engine/a.cpp", "#include <boost/asio/io_context.hpp>", "#include <CLI/CLI.hpp>", "#include <curl/curl.h>")
        self.assert_forbidden("src/text/a.cpp", "#include <unknown/library.h>", "#include <stdlib.h>")

    def test_full_names_only(self):
        self.assert_forbidden("src/text/a.cpp", '#include "tokenizer.h"', '#include "../base/result.h"', '#include "text/missing.h"')
        self.assert_forbidden("src/utils/a.cpp", "#include <vector>")


if __name__ == "__main__":
    unittest.main()
