"""What source files import, by the names that stand in them."""

from __future__ import annotations

import pytest

from langchain_tiered_memory.runs.files.disk import imports_in


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("python", "import os\nfrom x.y import one, two as t\n    import late\nimportant = 1\n", ("os", "x.y", "late")),
        ("python", "from a import (\n    b,\n)\nprint('import c')\n", ("a",)),
        ("typescript", "import { a } from './a';\nconst b = require(\"../b.js\")\nimport 'c'", ("./a", "../b.js", "c")),
        ("java", "import static a.b.C.*;\nimport a.D;\n", ("a.b.C", "a.D")),
        ("go", 'import (\n\t"fmt"\n\tx "example.com/m/pkg/store"\n)\n', ("fmt", "example.com/m/pkg/store")),
        ("c", '#include <stdio.h>\n#  include "lib/a.h"\n', ("lib/a.h",)),
        ("rust", "pub mod store;\nuse crate::a::b::C;\nuse std::fs;\n", ("store", "crate::a::b::C", "std::fs")),
        ("text", "import a", ()),
    ],
)
def test_imports_are_read(kind: str, text: str, wanted: tuple[str, ...]) -> None:
    assert imports_in(kind, text.encode()) == wanted
