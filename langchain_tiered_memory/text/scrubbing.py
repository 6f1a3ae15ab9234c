"""Takes keys, passwords and tokens out of a text that is to be logged, stored or raised.

Every foreign error's text passes here once: in the messages of our own errors (`errors.TieredMemoryError`), in events
(`runtime.py`) and in the few lines that are logged beside them. Patterns are of shapes, each linear in its text:
a repetition is bounded wherever another match could begin inside it.
"""

from __future__ import annotations

import re

HIDDEN = "***"
"""What stands where a secret was."""

_NAMED = (
    r"(?:api|subscription)[ _-]?key|access[ _-]?key(?:[ _-]?id)?|account[ _-]?key|private[ _-]?key"
    r"|secret(?:[ _-]?(?:access[ _-]?)?key)?|[a-z]{0,12}[ _-]?token|(?:pg|mysql_)?password|passwd|passphrase|pwd"
    r"|authorization|credentials?|client[ _-]?secret|sig(?:nature)?"
)
_ODD = r"(?=[\w.~+/=*-]{0,80}[A-Z0-9*=])"
"""What no word of plain lower case has: `basic training` and `hf_hub_download` are no keys."""
_NO_WORDS = r"(?=[\w*-]{0,80}[A-Z0-9*]|[a-z]{12})"
"""As that, or longer than a word between its hyphens."""
_NO_SENTENCE = r"(?-i:(?![A-Za-z][a-z]{1,10},?[ \t]{1,4}[a-z]{2,20}\b))"
"""Behind a colon, a short plain word and another one go on with a sentence, such as one of our own: what is said of
`max_token` is no secret of that name. Behind `=`, in quotes, with a digit or at a line's end it may be one."""
_PATTERNS = (
    (re.compile(r"(://)[^\s/\"'<>@]{1,600}(?:@[^\s/\"'<>@]{1,200})?@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(bearer)[ \t]{1,4}[A-Za-z0-9._~+/=*-]{6,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(rf"\b((?i:basic|negotiate|bot))[ \t]{{1,4}}{_ODD}[A-Za-z0-9._~+/=*-]{{6,}}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"\b(authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:token|apikey)[ \t]{1,4})[^\s\"']{6,}",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b((?:set-)?cookie[\"']?:[ \t]{0,4}[\"']?)[^\n\"']{6,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"\beyJ[\w-]{6,600}\.[\w-]{6,}(?:\.[\w-]*)?"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:sk|rk|gsk|xai|tvly|pplx|nvapi|lsv2|dop|pcsk|whsec)[-_][\w*-]{8,}"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:pk|npm|pypi|fw|pa)[-_]" + _NO_WORDS + r"[\w*-]{8,}"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:gh[oprsu]|github_pat|glpat|npg)[-_]\w{10,}"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:hf|r8)_" + _NO_WORDS + r"\w{10,}"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:SG|ya29|hvs)\.[\w-]{16,}(?:\.[\w-]{16,})?"), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9])(?:SK|dapi)[0-9a-f]{32}(?![A-Za-z0-9])"), HIDDEN),
    (re.compile(r"(/bot|hooks\.slack\.com/services/)\w{6,}[\w:/-]{10,}"), rf"\1{HIDDEN}"),
    (re.compile(r"(?<![A-Za-z0-9])xox[a-z]-[\w-]{8,}"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"), HIDDEN),
    (re.compile(r"\bAIza[\w-]{20,}"), HIDDEN),
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----)){0,20000}"
            r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
        ),
        HIDDEN,
    ),
    (re.compile(r"([?&](?:key|auth|code|sig)=)[^&\s\"'<>]{4,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (
        re.compile(
            rf"(?<![A-Za-z])((?:x-)?(?:{_NAMED})(?: provided)?\\?[\"']?[ \t]{{0,4}}"
            rf"(?:=[ \t]{{0,4}}|:[ \t]{{0,4}}{_NO_SENTENCE})"
            rf"(?:\\?[\"']|SecretStr\([\"'])?)"
            rf"(?!{re.escape(HIDDEN)})[^\s\"',;&<>}}\)\]\\]{{4,}}",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
)
_SIGNS = re.compile(
    r"://|bearer|basic|negotiate|\bbot|cookie|sg\.|ya29|hvs|dapi|sk[0-9a-f]|eyJ|[-_]|akia|asia|aroa|aida|aiza|key|token"
    r"|secret|passw|passp|pwd|auth|credential|sig",
    re.IGNORECASE,
)


def scrubbed(text: str) -> str:
    """`text` with `***` in the place of what looks like a key, a token, a password or a URL's credentials.

    Figures, ids and sentences stay as they are. Scrubbing twice changes nothing.
    """
    if _SIGNS.search(text) is None:
        return text
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def told(error: BaseException) -> str:
    """An error as one line for a person: its type, and what it says, scrubbed."""
    return scrubbed(f"{type(error).__name__}: {error}")
