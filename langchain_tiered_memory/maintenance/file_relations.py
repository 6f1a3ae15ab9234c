"""What kept files, their contents and dictionaries say of each other. All of it can be read from the disk again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from langchain_tiered_memory.errors import DamagedFileError
from langchain_tiered_memory.maintenance.remedies import Fault, Remedy
from langchain_tiered_memory.runs.files.compression import checksum_of
from langchain_tiered_memory.runs.files.content_rows import unpack_row
from langchain_tiered_memory.runs.files.disk import kind_of
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.schema import digest_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.maintenance.known_rows import Known


def of_kept_files(known: Known) -> Iterator[Fault]:
    """Of kept files, their contents, and the state of their tiers."""
    sizes: dict[str, int] = {}
    binary: set[str] = set()
    yield from _of_dictionaries(known)
    yield from _of_contents(known, sizes, binary)
    files = list(known.rows(schema.kept_files))
    named = {row["checksum"] for row in known.rows(schema.kept_files, sound=False)}
    for row in files:
        key = {name: row[name] for name in ("session_key", "path_digest")}
        what = unpacked(row["path"])
        if row["path_digest"] != digest_of(what):
            remedy = Remedy(schema.kept_files, key, None)
            yield known.fault("wrong_kept_file", what, "its digest is not that of its path", remedy)
        elif row["checksum"] not in sizes:
            remedy = Remedy(schema.kept_files, key, None)
            yield known.fault("wrong_kept_file", what, "its content is gone or damaged: it is read again", remedy)
        elif row["size"] != sizes[row["checksum"]]:
            remedy = Remedy(schema.kept_files, key, {"size": sizes[row["checksum"]]})
            yield known.fault("wrong_kept_file", what, "its size is not that of its content", remedy)
        elif row["kind"] != (kind := "binary" if row["checksum"] in binary else kind_of(what, b"")):
            remedy = Remedy(schema.kept_files, key, {"kind": kind})
            yield known.fault("wrong_kept_file", what, f"its kind is {row['kind']}, and it is {kind}", remedy)
    for checksum in sorted(set(sizes) - named):
        key = {"session_key": known.session["key"], "checksum": checksum}
        remedy = Remedy(schema.file_contents, key, None)
        yield known.fault("unused_content", checksum[:12], "no kept file has this content", remedy)
    newest = max((row["access_order"] for row in files), default=0)
    tiers = list(known.rows(schema.file_tiers))
    key = {"session_key": known.session["key"]}
    if files and not tiers:
        remedy = Remedy(schema.file_tiers, key, {**key, "next_order": newest + 1}, absent=True)
        yield known.fault("wrong_file_tiers", "tiers", "the state of its tiers is gone", remedy)
    for row in tiers:
        if row["next_order"] <= newest:
            remedy = Remedy(schema.file_tiers, key, {"next_order": newest + 1})
            yield known.fault("wrong_file_tiers", "tiers", "its next access has the number of an old one", remedy)


def _of_dictionaries(known: Known) -> Iterator[Fault]:
    for row in known.rows(schema.file_dictionaries):
        if checksum_of(bytes(row["payload"])) != row["digest"]:
            key = {name: row[name] for name in ("session_key", "number")}
            remedy = Remedy(schema.file_dictionaries, key, None)
            yield known.fault("damaged_dictionary", row["number"], "it is not what its checksum says", remedy)


def _of_contents(known: Known, sizes: dict[str, int], binary: set[str]) -> Iterator[Fault]:
    """Of contents; notes the size of each that is whole, and which are no text."""
    contents = schema.file_contents
    mine = contents.c.session_key == known.session["key"]
    for checksum in known.connection.scalars(
        select(contents.c.checksum).where(mine).order_by(contents.c.checksum)
    ).all():
        this = select(contents).where(mine, contents.c.checksum == checksum)
        row = known.connection.execute(this).mappings().one()  # one at a time: all of them may be large
        if any(damage_in(contents, row)):
            continue  # named already
        try:
            content = unpack_row(known.connection, known.session["key"], row)
        except DamagedFileError as error:
            key = {name: row[name] for name in ("session_key", "checksum")}
            remedy = Remedy(contents, key, None)
            yield known.fault("damaged_content", row["checksum"][:12], str(error), remedy)
        else:
            sizes[row["checksum"]] = row["size"]
            if kind_of("", content) == "binary":
                binary.add(row["checksum"])
