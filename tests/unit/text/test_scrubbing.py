"""Keys and passwords in foreign errors' texts are hidden, figures and sentences are not."""

from __future__ import annotations

import time

import pytest

from langchain_tiered_memory import settings
from langchain_tiered_memory.errors import NotFoundError, SettingsError, StorageError
from langchain_tiered_memory.settings.base import Frozen
from langchain_tiered_memory.text.scrubbing import HIDDEN, scrubbed

WORD = "Zk4" + "q8Lw" * 7  # made up, in the shape of a key


@pytest.mark.parametrize(
    "template",
    [
        "401: Incorrect API key provided: sk-{}. You can find yours in the settings.",
        "invalid header Authorization: Bearer {}",
        "{{'Authorization': 'Bearer sk-{}', 'Accept': '*/*'}}",
        '{{"x-api-key": "{}"}} was refused',
        "api_key={}&model=x",
        "openai_api_key='{}'",
        "GET https://generativelanguage.example/v1?key={} failed",
        "SignatureDoesNotMatch for AKIA" + "{}".upper(),
        "aws_secret_access_key = {}",
        "remote: ghp_{} is no longer valid",
        "token github_pat_{} expired",
        "the token eyJhbGciOiJIUzI1NiJ9.{}.{} is expired",
        "postgresql+psycopg://maria:{}@db.internal:5432/memory refused",
        "postgresql://maria:p@{}@db.internal/memory refused",
        'connection to "host=db user=maria password={} dbname=x" failed',
        "https://{}@chroma.internal:8000/api/v2 is unreachable",
        "http://user:{}@chroma.internal:8000 is unreachable",
        "headers={{'X-Chroma-Token': '{}'}}",
        "Basic {} was refused",
        "AIzaSy{} is not authorised",
        "hf_{} has no access",
        "xoxb-{} was revoked",
        "client_secret: {}",
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_is_hidden(template: str) -> None:
    secret = WORD.upper() if "AKIA" in template else WORD
    shown = scrubbed(template.replace("{}", secret).replace("{{", "{").replace("}}", "}"))
    assert secret not in shown
    assert secret[4:] not in shown
    assert "***" in shown
    assert scrubbed(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.",
        "level 2, 10 messages, 4,000 to 812 tokens",
        "the message id 550e8400-e29b-41d4-a716-446655440000 is not in this session",
        "https://docs.example/errors#429 says: try again in 20 s",
        "user.name@example.com wrote to https://example.com/path/@handle",
        "key 'harbour' has no value; a basic auth header was sent",
        "max_tokens=4096 is above the limit",
        "sqlite:////home/maria/memory.db: database is locked",
        "skipped: sk-8 and pk-1",
        "the password is missing",
        "there is no 'max_token': known are max_tokens, view",
        "api_key: Field required in this group",
        "the token: no, the count of them, was asked for",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert scrubbed(text) == text


def test_no_sentence_of_ours_is_eaten_whatever_setting_it_is_about() -> None:
    """A group of settings says what is known, behind a name that may look like a secret's."""
    for group in vars(settings).values():
        if isinstance(group, type) and issubclass(group, Frozen) and group.model_fields:
            with pytest.raises(SettingsError) as caught:
                group(max_token=1)
            assert HIDDEN not in str(caught.value)
            assert "there is no 'max_token'" in str(caught.value)


def test_the_words_of_our_own_errors_pass_there() -> None:
    for kind in (StorageError, NotFoundError):
        assert str(kind(f"postgresql://maria:{WORD}@db/x: gone")) == "postgresql://***@db/x: gone"


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ", "eyJ-", "-eyJaaaaaa",
        "a://", "://", "a@", "://a@", "bearer ", "Bearer a", "token", "token:", "api_key ",
        "api key", "sk-", "sk-a", "AKIA", "?key=", "&sig=", "-----BEGIN PRIVATE KEY-----", "ghp_", "xoxa-", "=", "a",
        "-",
        "secret ", "secret_", "access_key_id", " ", "'", "AIza",
    ],
)  # fmt: skip
def test_time_grows_with_the_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            scrubbed(text)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(80_000) < 40 * max(seconds(10_000), 0.0005)


@pytest.mark.parametrize(
    "secret",
    [
        "Ocp-Apim-Subscription-Key: 0123456789abcdef",
        "PGPASSWORD=hunter22",
        "Cookie: sessionid=abcdef123456",
        "Authorization: token abcdef123456",
        '{\\"api_key\\": \\"abcd1234efgh\\"}',
        "SG.abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "ya29.a0AfH6SMBxxxxxxxxxxxxxxxx",
        "dapi0123456789abcdef0123456789abcdef",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXX",
        "https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe",
        "-----BEGIN PRIVATE KEY-----\nMIIE-abc-def\n-----END PRIVATE KEY-----",
        "hf_abcdefghijklmnopqrst",
        "password=hunter dbname=x",
        "password: hunter22 is wrong",
        "{'token': 'hunter is it'}",
        "client_secret: hunter",
    ],
)
def test_further_shapes_of_keys_are_hidden(secret: str) -> None:
    hidden = scrubbed(secret)
    assert "***" in hidden
    for part in (
        "0123456789abcdef",
        "hunter",
        "abcdef123456",
        "abcd1234",
        "ABCDEFGHIJ",
        "a0AfH6",
        "XXXX",
        "AAHdq",
        "def\n",
    ):
        assert part not in hidden
    assert scrubbed(hidden) == hidden


@pytest.mark.parametrize(
    "plain",
    [
        "hf_hub_download() got an unexpected keyword",
        "Basic information about the order",
        "Negotiate between the two",
        'violates unique constraint "pk_sessions_entries"',
        "npm-install-failed at step 3",
        "pypi-mirror-is-down",
    ],
)
def test_words_that_begin_like_keys_stay(plain: str) -> None:
    assert scrubbed(plain) == plain
