"""Contents compressed with zstandard, plain or with a dictionary that was trained on a session's own files.

A dictionary pays on many small files, and costs its own size once. What comes back is compared with its checksum: a
frame that zstandard takes for sound, and what was put in, are two things.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

from langchain_tiered_memory.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUICK_LEVEL = 3
"""For a file that leaves hot while somebody waits: zstandard's own default, some 100 MB a second."""
DENSE_LEVEL = 12
"""For what the collector packs: a tenth denser than the quick level; the levels above take ten times as long for a
percent or two."""
LEAST_SAMPLES = 16
"""Fewer files than this teach a dictionary nothing."""
_SAMPLES_PER_DICTIONARY_BYTE = 4
"""A dictionary is at most this part of what it was trained on, or it would be a copy of it."""
_LEAST_DICTIONARY_BYTES = 1024
_LEAST_GAIN = 0.95
"""Of the size without a dictionary: with one it must be less, its own size included, to be worth being kept."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A content as it is kept."""

    payload: bytes
    form: str
    """`raw`, `zstd`, or `dense` for what the collector packed."""
    size: int
    """Of the content as it is."""
    dictionary: int | None = None
    """The number of the dictionary that it needs."""


def checksum_of(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def raw(content: bytes) -> Packed:
    """A content as it is, for a file in hot."""
    return Packed(content, "raw", len(content))


def packed(
    content: bytes, *, dense: bool = False, dictionary: bytes | None = None, number: int | None = None
) -> Packed:
    """A content compressed.

    Args:
        content: What is kept.
        dense: Whether nobody waits for it.
        dictionary: One to compress it with, and ...
        number: ... the dictionary's number.
    """
    level = DENSE_LEVEL if dense else QUICK_LEVEL
    trained = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
    payload = zstandard.ZstdCompressor(level=level, dict_data=trained).compress(content)
    return Packed(payload, "dense" if dense else "zstd", len(content), number if dictionary is not None else None)


def unpacked(kept: Packed, checksum: str, *, dictionary: bytes | None = None) -> bytes:
    """The content again.

    Raises:
        DamagedFileError: when it is not what was kept.
    """
    content = kept.payload
    if kept.form != "raw":
        trained = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
        try:
            content = zstandard.ZstdDecompressor(dict_data=trained).decompress(kept.payload, max_output_size=kept.size)
        except (zstandard.ZstdError, MemoryError, ValueError, OverflowError) as error:
            msg = f"a kept content cannot be unpacked: {error}; doctor() drops it, and its file is read again"
            raise DamagedFileError(msg) from error
    if len(content) != kept.size or checksum_of(content) != checksum:
        msg = "a kept content is not what its checksum says; doctor() drops it, and its file is read again"
        raise DamagedFileError(msg)
    return content


def train(contents: Sequence[bytes], *, most_bytes: int) -> tuple[bytes, int] | None:
    """A dictionary for contents like these, with its number; `None` where none can be made of them."""
    size = min(most_bytes, sum(map(len, contents)) // _SAMPLES_PER_DICTIONARY_BYTE)
    if len(contents) < LEAST_SAMPLES or size < _LEAST_DICTIONARY_BYTES:
        return None
    try:
        trained = zstandard.train_dictionary(size, list(contents))
    except zstandard.ZstdError:  # samples that have nothing in common, or are too few for its taste
        return None
    return trained.as_bytes(), trained.dict_id()


def densely(
    contents: Mapping[str, bytes], *, most_dictionary_bytes: int
) -> tuple[dict[str, Packed], tuple[bytes, int] | None]:
    """Contents packed as densely as they go, by their checksums, and the dictionary that they need where one paid."""
    plain = {name: packed(content, dense=True) for name, content in contents.items()}
    made = train(list(contents.values()), most_bytes=most_dictionary_bytes) if most_dictionary_bytes else None
    if made is None:
        return plain, None
    dictionary, number = made
    with_it = {
        name: packed(content, dense=True, dictionary=dictionary, number=number) for name, content in contents.items()
    }
    taken = len(dictionary) + sum(len(one.payload) for one in with_it.values())
    if taken >= _LEAST_GAIN * sum(len(one.payload) for one in plain.values()):
        return plain, None
    return with_it, made
