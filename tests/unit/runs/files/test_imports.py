"""What source files import, which files that may be, their tests, and what is opened next."""

from __future__ import annotations

import pytest

from langchain_tiered_memory.runs.files.companions import likely_next
from langchain_tiered_memory.runs.files.imports import candidates, imports_in, paired_tests
from langchain_tiered_memory.types.runs import FileAccess


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("python", "import os, a.b as c\nfrom x.y import one, two as t\n", ("os", "a.b", "x.y", "x.y.one", "x.y.two")),
        ("python", "from . import one\nfrom ..pkg.mod import f\n", (".one", "..pkg.mod", "..pkg.mod.f")),
        ("python", "from a import (\n    b,\n)\nimportant = 1\n", ("a",)),
        ("typescript", "import { a } from './a';\nconst b = require(\"../b.js\")\nimport 'c'", ("./a", "../b.js", "c")),
        ("java", "import static a.b.C.*;\nimport a.D;\n", ("a.b.C", "a.D")),
        ("go", 'import (\n\t"fmt"\n\tx "example.com/m/pkg/store"\n)\n', ("fmt", "example.com/m/pkg/store")),
        ("c", '#include <stdio.h>\n#  include "lib/a.h"\n', ("lib/a.h",)),
        ("rust", "pub mod store;\nuse crate::a::b::C;\nuse std::fs;\n", ("self::store", "crate::a::b::C")),
        ("text", "import a", ()),
    ],
)
def test_imports_are_read(kind: str, text: str, wanted: tuple[str, ...]) -> None:
    assert imports_in(kind, text) == wanted


@pytest.mark.parametrize(
    ("path", "kind", "imported", "file"),
    [
        ("/p/src/app/main.py", "python", "app.store", "/p/src/app/store.py"),
        ("/p/src/app/main.py", "python", ".store", "/p/src/app/store.py"),
        ("/p/src/app/main.py", "python", "..lib", "/p/src/lib/__init__.py"),
        ("/p/web/a.ts", "typescript", "./b.js", "/p/web/b.ts"),
        ("/p/web/a.ts", "typescript", "../ui", "/p/ui/index.ts"),
        ("/p/src/main/java/a/b/C.java", "java", "a.D", "/p/src/main/java/a/D.java"),
        ("/p/cmd/main.go", "go", "example.com/m/pkg/store", "/p/pkg/store/store.go"),
        ("/p/src/a.c", "c", "lib.h", "/p/include/lib.h"),
        ("/p/src/main.rs", "rust", "self::store", "/p/src/store.rs"),
        ("/p/src/x/y.rs", "rust", "crate::a::b::C", "/p/src/a/b.rs"),
        ("/p/src/x/y.rs", "rust", "super::z::f", "/p/src/x/z.rs"),
    ],
)
def test_the_file_that_an_import_means_is_among_its_candidates(path: str, kind: str, imported: str, file: str) -> None:
    assert file in candidates(path, kind, imported)


def test_a_package_of_others_is_no_file_here() -> None:
    assert candidates("/p/a.ts", "typescript", "react") == ()
    assert candidates("/p/a.txt", "text", "a") == ()


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("/p/src/app.py", "/p/tests/test_app.py"),
        ("/p/pkg/store.go", "/p/pkg/store_test.go"),
        ("/p/web/a.ts", "/p/web/a.test.ts"),
        ("/p/tests/test_app.py", "/p/src/app.py"),
        ("/p/web/a.spec.ts", "/p/web/a.ts"),
    ],
)
def test_tests_and_what_they_test_find_each_other(path: str, other: str) -> None:
    assert other in paired_tests(path)


def test_what_was_opened_next_most_often_comes_first() -> None:
    paths = ["a.py", "b.py", "z.py", "q.py", "a.py", "b.py", "c.py", "a.py"]
    accesses = [FileAccess(path=path, operation="read", tool="read", seq=n, at=0.0) for n, path in enumerate(paths)]
    assert likely_next(accesses, "/p/a.py")[:1] == ["b.py"]
    assert set(likely_next(accesses, "/p/a.py")) == {"b.py", "z.py", "q.py", "c.py"}
    assert likely_next(accesses, "/p/none.py") == []
