"""Embedders for tests: deterministic, without a model."""

from __future__ import annotations

import hashlib
import math
import random
import re

from langchain_core.embeddings import Embeddings


class HashingEmbeddings(Embeddings):
    """Words thrown into `dimensions` buckets: texts that share words are near each other."""

    def __init__(self, dimensions: int = 64, *, model: str = "hashing") -> None:
        self.dimensions = dimensions
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or [""]:
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimensions] += 1.0 if digest[4] & 1 else -1.0
        length = math.sqrt(sum(value * value for value in vector))
        return [value / length for value in vector] if length else [1.0, *vector[1:]]


class BrokenEmbeddings(Embeddings):
    """Fails on everything."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        msg = f"no vectors for {len(texts)} texts today"
        raise RuntimeError(msg)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class FixedEmbeddings(Embeddings):
    """Gives the same vector for every text, whatever it claims to be."""

    fingerprint = "fixed/3"

    def __init__(self, vector: list[float]) -> None:
        self.vector = vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(self.vector) for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        del text
        return list(self.vector)


class ScatteringEmbeddings(Embeddings):
    """Another direction for every text, with no meaning in it: for tests that need many different vectors."""

    def __init__(self, dimensions: int = 16) -> None:
        self.dimensions = dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        seeded = random.Random(text)
        return [seeded.gauss(0, 1) for _ in range(self.dimensions)]
