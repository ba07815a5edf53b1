"""Secrets in free text: after a name that means one, in many notations, and on command lines.

A pattern finds each place, code judges it. What is read around a place is bounded, so the time is linear in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.privacy.names import MASK, harmless, login, named
from inspector.privacy.vocabulary import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST = 1000
"""Characters of a value that are looked at."""
_AROUND = 200
"""Characters before a name that are looked at, and of a command before one of its options."""
_PLACE = regex.compile(
    r"(?P<it>(?:pass|pw|psk|secret|token|credential|community|cookie|key|masterauth)[\w-]*)"
    r"(?:(?P<assign>(?:\\{0,3}['\"])?\]?[ \t]*(?:=>|:?=|:))|(?P<call>\()|(?P<comma>\\{0,3}['\"]?[ \t]*,)"
    r"|(?P<quote>\\{0,3}['\"])|(?P<close>>)|(?P<end></)|(?P<space>[ \t]+))",
    regex.IGNORECASE,
)
"""The last word of what may be a name, and a sign after it. Without counted repetitions: in hostile text they overlap,
and RE2 becomes slow."""
_SIGNS = ("assign", "call", "comma", "quote", "close", "end", "space")
_ATTRIBUTE = regex.compile(r"[ \t]+(?:value|content)[ \t]*=")
_PAIR = regex.compile(r"\w+>(?:\s|\\n|#)*<\w+>")
_TAG = 100
"""Characters of a tag that are looked at."""
_MARKUP = frozenset({"element", "keyed", "pair"})
_NAMING = frozenset("_-.:")
"""Characters of a name besides letters and digits."""
_LEAD = regex.compile(
    r"[ \t]*(?:\\{1,4}(?:\r?\n|n)?[ \t#]+)?(?:--(?:plaintext|iscrypted)[ \t]+)?(?P<verb>(?:is|was)[ \t:]+)?"
    r"(?:[&!][\w.:/-]+[ \t]+)?"
    r"(?:(?P<block>[|>][+-]?\d?(?:[ \t]*\r?\n|[ \t]*\\{1,4}n|[ \t]+))"
    r"|(?P<line>(?:\r?\n|\\{1,4}n)(?:[ \t]*#)?[ \t]+(?:-[ \t]+)?))?"
)
"""What may stand before a value: a continued line, a verb, a tag of YAML, the sign of a block, an indented line."""
_QUOTE = regex.compile(r"\\{0,3}['\"`]")
_BARE_END = regex.compile(r"[\s'\"`,;&\\<>|]")
_STOP = regex.compile(r"[\s'\"`<>]")
_ANOTHER = regex.compile(r"[,;&][\w.-]+=")
_LINE_START = regex.compile(r"[ \t#;*+-]*\\{0,3}['\"]?")
_VARIABLE = regex.compile(
    r"\$[a-z_]+\d{0,2}(?:::[a-z_]+\d{0,2})*(?:\[.*)?|\$\(.*|(?:[$%#]\{[^{}]*\}?[\s.:/@_-]*)+|%\w+%|%s|%\(\w+\)s"
    r"|<%.*|<[a-z_ -]+>|\{\{.*|\{[a-z_ ]*\}|\[[a-z_ ]*\]|\([a-z_ ]*\)|@[a-z_]+|[$%{\[(<*&@]|-----BEGIN.*",
    regex.IGNORECASE | regex.DOTALL,
)
"""A variable, a template, a word in brackets."""
_CODE = regex.compile(
    r"[a-z_][\w.]*[(\[].*|\w+::[\w:]*|[&*][a-z_]+"
    r"|(?:true|false|undef|null|none|nil|sensitive|redacted|changed|required)\b.*|.{0,2}|\d{1,3}|[\d.:/-]{1,5}",
    regex.IGNORECASE | regex.DOTALL,
)
"""A call, a constant, a word, a small number: values without quotes that are not secrets."""
_PATH = regex.compile(
    r"/(?:etc|opt|var|usr|srv|run|home|root|tmp|dev|proc|sys|data|mnt|media|lib\d*|s?bin|boot|secrets|puppet[\w-]*)"
    r"(?:/\S*)?|(?:/[a-z][a-z._-]*){2,}/?|(?:[\w.-]+/)+[\w.-]+\.\w{2,5}|[a-z]:\\.*|[a-z]+://[^@]*",
    regex.IGNORECASE,
)
_ENDS = frozenset("\n'\"`<>")
"""What ends a line, or what may be one."""
_LETTERS = regex.compile(r"[A-Za-z]+")
_STRICT = regex.compile(
    r"(?:^|[\s;&|])(?:setenv|env|export|set|fastcgi_param|uwsgi_param|d-i \S+"
    r"|(?:login|user|username|account)[ \t]+\S+)[ \t]+$",
    regex.IGNORECASE,
)
"""What stands before a name whose value follows without a sign."""
_DIRECTIVES = frozenset({"requirepass", "masterauth", "bindpw", "rootbindpw", "rootpw"})
"""Names that are no words of a language."""
_DEFINING = regex.compile(r"(?:\bdefine[ \t]*\([ \t]*|\bset(?:env)?[ \t(]+)\\{0,3}['\"]?:?$", regex.IGNORECASE)


class _Value(NamedTuple):
    begin: int
    end: int
    text: str
    quoted: bool = False
    verb: bool = False
    """Whether a verb stands before it."""


class _Name(NamedTuple):
    begin: int
    text: str
    before: str
    """What stands before it in its line."""
    starts: bool
    """Whether a line begins with it, or what may be a line of its own: within quotes, in an element."""


SIGNS = (
    "wep",
    "masterauth",
    "stats",
    "identified",
    "authorization",
    "_auth",
    'auth"',
    "auth'",
    "auth\\",
    "createuser",
    " -u",
    " -p",
    "--user",
    "--auth",
    "--basic",
    "--login",
    "--proxy-user",
    "redis-cli",
    "ipmitool",
    "sqlcmd",
    "bcp",
    "osql",
    "mosquitto",
    "snmp",
    "ldap",
    "7z",
    "rar ",
    "plink",
    "pscp",
    "psftp",
    "openssl",
    "rabbitmqctl",
    "vault",
    "zip ",
)
"""Texts, in lower case, of which one is in any text with a secret that has no name."""
_PART = r"[^\s:'\"`<>\]]*"
_LETTER, _OTHER = r"[a-z\\\x{80}-\x{10ffff}]", r"[0-9!#$%&*+=?^~\\\x{80}-\x{10ffff}]"
"""What ``_mixed`` asks for, in lower case; it may be escaped, and what is not ASCII may be either."""
_LISTED = regex.compile(
    rf":(?:\d{{1,5}}|\*):[^\s:]+:[^\s:]+:{_PART}(?:{_LETTER}{_PART}{_OTHER}|{_OTHER}{_PART}{_LETTER})"
)


def listed(text: str) -> bool:
    """Whether a text in lower case may have lines as those of PostgreSQL's passwords; times look similar."""
    return _LISTED.search(text) is not None


def masked(text: str) -> str:
    """Return a text with masks instead of its secrets."""
    parts, at = [], 0
    for begin, end in _found(text):
        if begin >= at:
            parts += [text[at:begin], MASK]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def values(text: str) -> list[str]:
    """Return the secrets in a text."""
    return [text[begin:end] for begin, end in _found(text)]


def _found(text: str) -> list[tuple[int, int]]:
    found = [*_after_names(text), *_commands(text)]
    found.sort(key=lambda span: (span[0], -span[1]))
    return found


# -- after a name ---------------------------------------------------------------------------------------------


def _after_names(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for found in _PLACE.finditer(text):
        if found.start() < done:
            continue
        name = _name(text, *found.span())
        if not named(name.text):
            continue
        begin, end = next(span for span in map(found.span, _SIGNS) if span[0] >= 0)
        sign, end = _sign(text, name, next(sign for sign in _SIGNS if found.start(sign) >= 0), end)
        if sign not in _JUDGES:
            continue
        for value in _values(text[begin:end], text[end : end + _LONGEST], end, sign, name):
            if value.text and MASK not in value.text and _JUDGES[sign](text, name, value):
                done = value.end if value.end < end + _LONGEST else _whole(text, value.end)
                yield value.begin, done


def _sign(text: str, name: _Name, sign: str, end: int) -> tuple[str, int]:
    """Return what leads from a name to its value, and where it ends."""
    rest = text[end : end + _TAG]
    in_tag = text[name.begin - 1 : name.begin] == "<"
    if sign == "close" and in_tag:
        return "element", end
    if sign == "space" and in_tag:
        return ("element", end + rest.index(">") + 1) if ">" in rest else (sign, end)
    if sign == "quote":
        if found := _ATTRIBUTE.match(rest):
            return "attribute", end + found.end()
        tag = rest.partition(">")
        return ("keyed", end + len(tag[0]) + 1) if tag[1] and "<" not in tag[0] and "\n" not in tag[0] else (sign, end)
    if sign == "end" and (found := _PAIR.match(rest)):
        return "pair", end + found.end()
    return sign, end


def _whole(text: str, at: int) -> int:
    """Return where a value ends that is longer than what was looked at."""
    while at < len(text):
        found = _STOP.search(text[at : at + _LONGEST])
        if found is not None:
            return at + found.start()
        at += _LONGEST
    return len(text)


def _name(text: str, at: int, end: int) -> _Name:
    begin, least = at, max(0, at - _AROUND)
    while begin > least and (text[begin - 1].isalnum() or text[begin - 1] in _NAMING):
        begin -= 1
    if text[begin - 1 : begin] == "\\" and begin < at and text[begin] in "nrt":  # an escaped line feed
        begin += 1
    name = text[begin:end].lstrip("-.:")
    if text[at : at + 3].lower() == "key" and begin == at and text[begin - 1 : begin] == " ":  # an API key
        word = text[least : begin - 1].rpartition(" ")[2]
        name = f"{word} {name}" if named(f"{word} {name}") else name
    before = text[least:begin]
    starts = _LINE_START.fullmatch(before[_line(before) :]) is not None
    return _Name(begin, name, before.rpartition("\n")[2], starts)


def _values(written: str, rest: str, at: int, sign: str, name: _Name) -> Iterator[_Value]:
    """Yield the value after a sign, in the text that follows it; of a block all its lines."""
    if sign in _MARKUP:
        yield from _content(rest, at)
        return
    lead = _LEAD.match(rest[:_TAG])
    begin = lead.end() if lead else 0
    if lead and lead["block"]:
        yield from _block(rest, at, begin, broken=not lead["block"].endswith((" ", "\t")))
    elif (quote := _QUOTE.match(rest[begin : begin + 4])) is not None:
        inner = begin + quote.end()
        end = _closed(rest, inner, quote[0])
        yield _Value(at + inner, at + end, rest[inner:end], quoted=True)
    elif begin < len(rest) and not rest[begin].isspace():
        bare = _BARE_END.search(rest[begin + 1 :])
        end = begin + 1 + bare.start() if bare else len(rest)
        line = rest[begin:].partition("\n")[0].partition(" #")[0].partition("</")[0].rstrip()
        alone = len(line.split()) == 1 and _ANOTHER.search(line) is None
        if lead and lead["line"]:
            # Alone on the next line, and nothing that has a value itself.
            if sign != "assign" or not alone or ":" in line or "=" in line.rstrip("="):
                return
            end = begin + len(line)
        elif (name.starts and alone) or _phrase(written, line, name):
            end = begin + len(line.rstrip(",;\"'"))
        yield _Value(at + begin, at + end, rest[begin:end], verb=lead is not None and lead["verb"] is not None)


def _phrase(sign: str, line: str, name: _Name) -> bool:
    """Whether a value has spaces: ``passphrase = correct horse``. A sentence has words that are known, a command
    follows an assignment without spaces."""
    yaml = sign.endswith(":") and name.starts and ":" not in line and "," not in line
    if not (yaml or (sign.endswith("=") and sign[-2:-1].isspace())):
        return False
    return not any(word.strip(",.").lower() in WORDS for word in line.split()) and "(" not in line and "$" not in line


def _content(rest: str, at: int) -> Iterator[_Value]:
    """Yield the content of an element."""
    begin = len(rest) - len(rest.lstrip())
    if rest.startswith("<![CDATA[", begin):
        begin += len("<![CDATA[")
        end = rest.find("]]>", begin)
    else:
        end = rest.find("<", begin + 1)
    text = rest[begin : end if end >= 0 else len(rest)].rstrip()
    yield _Value(at + begin, at + begin + len(text), text, quoted=True)


def _block(rest: str, at: int, begin: int, *, broken: bool) -> Iterator[_Value]:
    """Yield the lines of a block; only a word if it is not ``broken`` into lines any more."""
    first = begin
    for line in rest[begin:].splitlines(keepends=True):
        text = line.strip()
        if text and begin != first and line[:1] not in " \t#":
            break
        if begin == first and not broken:
            text = text.partition(" ")[0]
        start = begin + line.find(text)
        yield _Value(at + start, at + start + len(text), text, quoted=True)
        begin += len(line)


def _closed(rest: str, at: int, quote: str) -> int:
    """Return where a quoted text ends: at the same quote; without one, with its line."""
    end = rest.find(quote, at)
    while len(quote) == 1 and end > at and rest[end - 1] == "\\" and rest[end - 2] != "\\":
        end = rest.find(quote, end + 1)
    if end < 0:
        end = rest.find("\n", at)
    return end if end >= 0 else len(rest)


def _telling(value: _Value) -> bool:
    """Whether a value may be a secret."""
    text = value.text
    if harmless(text) or len(set(text)) == 1 or _variable(text):
        return False
    return value.quoted or (_CODE.fullmatch(text) is None and _PATH.fullmatch(text) is None)


def _variable(text: str) -> bool:
    return text[:1] in "$%#<{[(@&*-" and _VARIABLE.fullmatch(text) is not None


def _prose(text: str) -> bool:
    """Whether a text consists of common words."""
    words = _LETTERS.findall(text)
    return not any(character.isdigit() for character in text) and all(word.lower() in WORDS for word in words)


def _mixed(text: str) -> bool:
    """Whether a text is no word, no number and no name."""
    letters = any(character.isalpha() for character in text)
    others = any(character.isdigit() or character in "!#$%&*+=?^~" for character in text)
    return len(text) > 5 and letters and others and "/" not in text[1:]


def _line(before: str) -> int:
    """Return where a line begins, or what may be one: within quotes, in an element, after an escaped line feed."""
    begin = max(before.rfind(sign) for sign in _ENDS) + 1
    return max(begin, before.rfind("\\n") + 2 if "\\n" in before else 0)


def _ends_line(text: str, end: int) -> bool:
    rest = text[end : end + _AROUND].lstrip(" \t\r")
    return not rest or rest[0] in _ENDS or rest.startswith("\\n")


def _assigned(text: str, name: _Name, value: _Value) -> bool:
    if not _telling(value):
        return False
    sign = text[name.begin + len(name.text) : value.begin].strip()
    if value.quoted or not sign.startswith(":") or sign.startswith(":="):
        return True
    # After a colon there may be any sentence, unless it is a line of its own.
    return (name.starts and _ends_line(text, value.end)) or _mixed(value.text)


def _called(_text: str, name: _Name, value: _Value) -> bool:
    return value.quoted and _telling(value) and ("passw" in name.text.lower() or _mixed(value.text))


def _element(text: str, name: _Name, value: _Value) -> bool:
    return text[name.begin - 1 : name.begin] == "<" and _keyed(text, name, value)


def _keyed(_text: str, _name: _Name, value: _Value) -> bool:
    return _telling(value) and not _prose(value.text)


def _attribute(_text: str, _name: _Name, value: _Value) -> bool:
    return value.quoted and _telling(value)


def _listed(_text: str, name: _Name, value: _Value) -> bool:
    return value.quoted and _telling(value) and _DEFINING.search(name.before) is not None


def _spaced(text: str, name: _Name, value: _Value) -> bool:
    if value.text[0] in "-=:" or not _telling(value) or _prose(value.text):
        return False
    if text[name.begin] == "-" or name.text.lower() in _DIRECTIVES or _STRICT.search(name.before) is not None:
        return True
    if value.quoted:
        return "passw" in name.text.lower()
    alone = _ends_line(text, value.end)
    if name.starts and alone:
        return True
    return _mixed(value.text) and (alone or value.verb)


_JUDGES: dict[str, Callable[[str, _Name, _Value], bool]] = {
    "assign": _assigned, "call": _called, "element": _element, "attribute": _attribute, "keyed": _keyed,
    "pair": _keyed, "comma": _listed, "space": _spaced,
}  # fmt: skip

# -- on command lines -----------------------------------------------------------------------------------------

_VALUE = r"(?:\\?'(?P<one>[^'\n]+)'|\\?\"(?P<two>[^\"\n]+)\"|(?P<bare>[^\s'\"`\\|;][^\s'\"`\\|;]*))"


def _options(programs: str, option: str) -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return the patterns of a command, and of its options with secrets."""
    return (
        regex.compile(rf"(?:^|[\s/;&|'\"(`\[>])(?P<it>(?:{programs})[ \t][^\n|]*)"),
        regex.compile(rf"(?:{option}){_VALUE}"),
    )


_PROGRAMS = (
    _options("sshpass|mongo(?:sh|dump|restore|export|import)?|cqlsh|r?desktop|az[ \t]+login"
             r"|(?:docker|podman|buildah|skopeo|helm|nerdctl|oras)(?:[ \t]+registry)?[ \t]+login", r"[ \t]-p[ \t]*"),
    _options("ldap(?:search|add|modify|passwd|whoami|delete|compare|modrdn)", r"[ \t]-[ws][ \t]*"),
    _options("redis-cli", r"[ \t]-a[ \t]*"),
    _options("ipmitool|sqlcmd|bcp|osql|zip|unzip|mosquitto_(?:pub|sub)", r"[ \t]-P[ \t]*"),
    _options("snmp(?:walk|bulkwalk|get|getnext|set|table|trap|inform)", r"[ \t]-[cAX][ \t]*"),
    _options("7z[ar]?|rar|unrar", r"[ \t]-p"),
    _options("plink|pscp|psftp", r"[ \t]-pw[ \t]+"),
    _options("openssl", r"[ \t]-(?:k[ \t]+|K[ \t]+|pass(?:in|out|word)?[ \t]+pass:)"),
    _options("(?:ht|mosquitto_)passwd", r"[ \t]-\w*b\w*[ \t]+(?:-\w+[ \t]+)*\S+[ \t]+\S+[ \t]+"),
    _options("rabbitmqctl", r"[ \t](?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+"),
    _options("vault", r"[ \t]login[ \t]+"),
    _options("createUser", r"[ \t](?:MD5|SHA\S*|DES|AES\S*)[ \t]+"),
)  # fmt: skip
_TOOLS = regex.Words((
    "sshpass", "mongo", "cqlsh", "desktop", " login", "ldap", "redis-cli", "ipmitool", "sqlcmd", "bcp", "osql", "zip",
    "mosquitto", "snmp", "7z", "rar ", "plink", "pscp", "psftp", "openssl", "passwd", "rabbitmqctl", "createUser",
))  # fmt: skip
"""Texts of which one is in any of these commands."""
_LOGIN = regex.compile(
    r"(?:^|[\s'\"\[,])-{1,2}(?:u|U|user|proxy-user|basic|auth|login)(?:[ \t]+|=|['\"],[ \t]*)\\?['\"]?"
    r"(?P<user>[^\s:'\"/%=]+)[:%](?P<it>[^\s'\"\\]+)"
)
"""A user and a password in one option."""
_OPTION = regex.compile(rf"[ \t]-p(?P<space>[ \t]+|=)?{_VALUE}")
_AS_USER = regex.compile(r"[ \t]-{1,2}(?:u|U|l|user|username|login)(?:[ \t=]|\b)")
_NOT_PASSWORD = regex.compile(r"\b(?:sudo|runuser|mkdir|ssh|scp|cp|tar|rsync|install|run)\b")
"""Commands whose ``-p`` is something else."""
_LINES: tuple[tuple[str, regex.Pattern[str]], ...] = (
    ("stats", regex.compile(r"\bstats[ \t]+auth[ \t]+[^\s:]+:(?P<it>\S+)")),
    ("passwd", regex.compile(
        r"\becho[ \t]+(?:-\w+[ \t]+)?\\?['\"]?(?:[^\s:'\"]+:)?(?P<value>[^\s'\"]+)[^\n|]*\|[ \t]*\S*passwd\b")),
    (" ", regex.compile(
        r"\bidentified[ \t]+(?:with[ \t]+\S+[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?\\?['\"](?P<it>[^'\"\n]+)",
        regex.IGNORECASE)),
    ("uthorization", regex.compile(
        r"\bauthorization\\?['\"]?[ \t]*[:=]?[ \t]*\\?['\"]?(?:basic|bearer|token|digest|apikey)[ \t]+"
        r"(?P<it>[^\s'\"\\]+)",
        regex.IGNORECASE)),
    (":", regex.compile(
        r"(?:^|[\s'\"`>])[^\s:#/'\"`<>]+:(?:\d{1,5}|\*):[^\s:]+:[^\s:]+:(?P<it>[^\s:'\"`<>\\\]]{6,})(?:$|[\s'\"`<\\\]])")),
    ("auth", regex.compile(
        r"(?P<name>_?auth)\\{0,3}['\"]?[ \t]*(?:[:=]|=>)[ \t]*\\{0,3}['\"]?(?P<it>[A-Za-z0-9+/_-]{6,}={0,2})")),
)  # fmt: skip
"""Other places of a secret, each with a text that is near it: of HAProxy, SQL, headers, PostgreSQL, Docker."""


def _commands(text: str) -> Iterator[tuple[int, int]]:
    if _TOOLS.within(text):
        for program, option in _PROGRAMS:
            for command in program.finditer(text):
                line = command[0][:_LONGEST]
                for found in option.finditer(line):
                    begin, end = _argument(found)
                    if _worth(line[begin:end]):
                        yield command.start() + begin, command.start() + end
    if "-u" in text or "-U" in text or "--" in text:
        for found in _LOGIN.finditer(text):
            if found["user"] != found[0] and not found[0].isdecimal() and _worth(found[0]):
                yield found.span()
    if " -p" in text and _AS_USER.search(text):
        yield from _dash_p(text)
    for sign, pattern in _LINES:
        if sign in text:
            for found in pattern.finditer(text):
                begin, end = found.span("value" if sign == "passwd" else 0)
                value = text[begin:end]
                other = (sign == "auth" and not login(found["name"], value)) or (sign == ":" and not _mixed(value))
                if _worth(value) and not other:
                    yield begin, end


def _argument(found: regex.Match[str]) -> tuple[int, int]:
    return next(found.span(group) for group in ("one", "two", "bare") if found.start(group) >= 0)


def _dash_p(text: str) -> Iterator[tuple[int, int]]:
    """Yield the values of ``-p`` in commands that also name a user."""
    for found in _OPTION.finditer(text):
        begin, end = _argument(found)
        value = text[begin:end]
        line = text[max(0, begin - _AROUND) : begin].rpartition("\n")[2]
        after = text[end : end + _AROUND].partition("\n")[0]
        if value.replace(":", "").isdecimal() or not _worth(value) or _prose(value):
            continue
        if found["space"] is None and not _mixed(value):
            continue
        if _AS_USER.search(f"{line} {after}") and _NOT_PASSWORD.search(line) is None:
            yield begin, end


def _worth(value: str) -> bool:
    """Whether the value of an option may be a secret."""
    text = value.strip()
    known = harmless(text) or MASK in text or _variable(text)
    return not known and not text.startswith("-") and (text[:1] != "/" or _PATH.fullmatch(text) is None)
