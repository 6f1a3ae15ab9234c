"""An SQLite file that is encrypted page by page, by SQLCipher: its tables and text index, its log and its journal.

What a caller gives as a key is never used as it stands. The key of the pages is derived from it and from the salt in
the file's first bytes, as SQLCipher derives one from a passphrase, so that its own tools open the file too. That is
slow on purpose; it is done once for a file, not for each connection.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_tiered_memory.errors import KeyNeededError, NotEncryptedError, SettingsError, StorageError, WrongKeyError
from langchain_tiered_memory.sql.errors import storage_error
from langchain_tiered_memory.sql.private_files import PRIVATE, create_file
from langchain_tiered_memory.text.scrubbing import told

if TYPE_CHECKING:
    from pathlib import Path

KeySource: TypeAlias = Callable[[], str | bytes]
"""Gives the key, each time it is asked. It is asked again where the key that it gave no longer opens the file."""
SHORTEST_KEY_BYTES = 16
_PLAIN_BEGINNING = b"SQLite format 3\0"
_PAGE_BYTES = 4096
_DERIVATION = ("sha512", 256_000, 32)
"""SQLCipher 4's own: PBKDF2 with HMAC-SHA512, its rounds, the bytes of an AES-256 key."""


def driver_of(key: FileKey | None) -> Any:  # noqa: ANN401 - two modules of one interface, one of which has no types
    """The module that opens a file: SQLite's, or with a key SQLCipher's.

    Raises:
        SettingsError: where SQLCipher is not installed.
    """
    if key is None:
        return sqlite3
    try:
        from sqlcipher3 import dbapi2  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = "encryption needs SQLCipher: `pip install sqlcipher3`"
        raise SettingsError(msg) from error
    return dbapi2


class FileKey:
    """The key of one file.

    Args:
        ask: Gives the key.
    """

    def __init__(self, ask: KeySource) -> None:
        self._ask = ask
        self._salt = b""
        self._pages = ""

    def unlock(self, connection: Any, path: Path) -> None:  # noqa: ANN401 - SQLCipher's connection, which has no types
        """Have a connection that was just made read and write the file with this key."""
        connection.execute("PRAGMA cipher_log_level=NONE").fetchall()  # else a wrong key is told on standard error
        connection.execute(f"PRAGMA key=\"x'{'0' * 64}'\"").fetchall()
        salt = _salt_of(connection)
        if salt == _PLAIN_BEGINNING:
            msg = (
                f"{path} is not encrypted, and a key was given: make an encrypted copy with `tiered-memory encrypt`, "
                "or open it without a key"
            )
            raise NotEncryptedError(msg)
        if not self._pages or salt != self._salt:
            self._derive(salt)
        connection.execute(f"PRAGMA key=\"x'{self._pages}'\"").fetchall()

    def ask_again(self) -> None:
        """Take what the caller gives now for the key from now on."""
        self._pages = ""

    def rekey(self, connection: Any) -> None:  # noqa: ANN401 - as above
        """Write every page anew with this key, in one transaction of a connection that another key unlocked."""
        self._derive(_salt_of(connection))
        connection.execute(f"PRAGMA rekey=\"x'{self._pages}'\"").fetchall()

    def copy(self, plain: Path, encrypted: Path) -> None:
        """Write an encrypted copy of a plain database. See `encrypt_copy`."""
        self._derive(os.urandom(len(_PLAIN_BEGINNING)))
        with closing(
            driver_of(self).connect(plain.as_uri() + "?mode=rw", uri=True, isolation_level=None)
        ) as connection:
            connection.execute(f"ATTACH ? AS encrypted KEY \"x'{self._pages}'\"", (str(encrypted),))
            connection.execute("BEGIN")
            connection.execute("SELECT sqlcipher_export('encrypted')").fetchall()
            connection.execute("COMMIT")

    def _derive(self, salt: bytes) -> None:
        try:
            given = self._ask()
        except Exception as error:  # a caller's own: it may look the key up anywhere
            msg = f"the function that returns the key failed ({told(error)}): nothing was opened"
            raise KeyNeededError(msg) from error
        secret = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given
        if not isinstance(secret, bytes) or len(secret) < SHORTEST_KEY_BYTES:
            what = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(given).__name__
            msg = (
                f"a key is a string or bytes of at least {SHORTEST_KEY_BYTES} bytes, such as from "
                f"`secrets.token_urlsafe(32)`, and the function returned {what}"
            )
            raise SettingsError(msg)
        digest, rounds, length = _DERIVATION
        self._pages = hashlib.pbkdf2_hmac(digest, secret, salt, rounds, length).hex() + salt.hex()
        self._salt = salt


def refusal(error: BaseException, path: Path, key: FileKey | None) -> StorageError | None:
    """The error for a file that does not open because of its key; `None` where a driver's error says something else."""
    if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB:
        return None
    if key is not None:
        return WrongKeyError(
            f"{path} does not open with this key, or its first page is damaged: give the key that it was last "
            "encrypted with. Without it nobody can read it"
        )
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_PLAIN_BEGINNING)) != _PLAIN_BEGINNING and not path.stat().st_size % _PAGE_BYTES:
            return KeyNeededError(
                f"{path} is encrypted, or damaged: give its key with encryption_key=, on the command line --key-file"
            )
    return None


def encrypt_copy(plain: Path, encrypted: Path, ask: KeySource) -> None:
    """Write an encrypted copy of a plain SQLite database, as it is now. What is broken off leaves no half database.

    For a process of its own: in one that has the database open, closing it here would take the locks from all others.

    Raises:
        StorageError: when the first is no plain database, the copy is there already, or one cannot be read or written.
        SettingsError: when the key cannot be used.
    """
    with plain.open("rb") as file:
        is_plain = file.read(len(_PLAIN_BEGINNING)) == _PLAIN_BEGINNING
    if not is_plain:
        msg = f"{plain} is not a plain SQLite database: nothing was copied"
        raise StorageError(msg)
    key = FileKey(ask)
    driver = driver_of(key)
    if not create_file(encrypted, PRIVATE):
        msg = f"{encrypted} already exists: nothing was copied"
        raise StorageError(msg)
    try:
        key.copy(plain, encrypted)
    except BaseException as error:
        with suppress(OSError):
            encrypted.unlink()
        if isinstance(error, driver.Error):
            raise storage_error(error, str(plain)) from error
        raise


def _salt_of(connection: Any) -> bytes:  # noqa: ANN401 - as above
    """A file's first bytes, or of an empty one those that it will have.

    Never read through a descriptor of our own: its closing would take SQLite's locks on the file from this process.
    """
    (salt,) = connection.execute("PRAGMA cipher_salt").fetchone()
    return bytes.fromhex(salt)
