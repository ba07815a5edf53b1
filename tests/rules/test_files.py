"""The rules on files (F01 to F16), and what a run remembers of its files."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis import analyzer
from inspector.host import pki
from inspector.rules import rule_of
from inspector.rules.answer_cut_off import CLOSED
from inspector.rules.kit import *
from inspector.rules.static_catalogs import static_catalog
from inspector.runs import observations
from inspector.runs.examples import authorities, private_key
from inspector.runs.observations import ObservedFiles, served
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding

FILE, OTHER = "modules/demo/app.conf", "modules/demo/other.conf"
STATIC = "modules/demo/files/app.conf"


def found(ident: str, records: Sequence[Record]) -> list[Finding]:
    return [finding for run in runs_of(records, [rule_of(ident)]) for finding in run.findings]


def messages(ident: str, *parts: ExamplePart, **how: Any) -> list[str]:
    return [finding.message for finding in found(ident, talk(*parts, **how))]


def file(*sources: str, title: str = "/etc/app.conf", **parameters: Any) -> dict[str, Any]:
    source = sources[0] if len(sources) == 1 else list(sources)
    return {"type": "File", "title": title, "parameters": {"source": source} | parameters}


def missing(name: str) -> ExamplePart:
    return metadata(name, status=404)


# -- what a run remembers ------------------------------------------------------------------------------


def files_of(*parts: ExamplePart, **how: Any) -> ObservedFiles:
    (run,) = runs_of(talk(*parts, **how), [])
    return run.files


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("puppet:///modules/demo/a", "modules/demo/a"),
        ("puppet://puppet.example:8140/modules/demo/a b%20c", "modules/demo/a b%20c"),
        ("puppet:///modules/demo/dir/", "modules/demo/dir"),
        ("/srv/a", None),
        ("https://files.example/a", None),
        ("puppet:///", None),
        (None, None),
    ],
)
def test_the_name_by_which_a_source_is_asked_for(source: str | None, name: str | None) -> None:
    assert served(source) == name


def test_the_catalog_says_where_files_come_from() -> None:
    resources = [
        file(f"puppet:///{FILE}", f"puppet:///{OTHER}"),
        file("/srv/a", f"puppet:///{FILE}", title="/etc/b"),
        file("https://files.example/a", title="/opt/a"),
        file("https://files.example/b", title="/opt/b", checksum_value="0" * 64),
        file("http://user:secret@files.example/c", title="/opt/c"),
    ]
    files = files_of(plugins(), catalog(resources=resources), report())
    assert files.catalog == 2
    assert files.sources == {"File[/etc/app.conf]": (FILE, OTHER)}
    assert files.elsewhere == {"https://files.example": (2, 1)}


def test_a_later_catalog_replaces_an_earlier_one() -> None:
    files = files_of(plugins(), static_catalog(), catalog(environment="dev"), report())
    assert (files.catalog, files.static, files.inlined, files.sources, files.code_id) == (3, {}, {}, {}, None)


def test_a_catalog_that_failed_replaces_nothing() -> None:
    files = files_of(plugins(), static_catalog(), catalog(status=500), report())
    assert files.catalog == 2
    assert list(files.static) == [STATIC]
    assert files.inlined == {FILE: True}


def test_a_tree_in_a_static_catalog() -> None:
    def entry(below: str) -> dict[str, Any]:
        tail = "" if below == "." else f"/{below}"
        return {
            "path": "/srv", "relative_path": below, "type": "directory" if below == "." else "file", "source": None,
            "checksum": {"type": "md5", "value": "{md5}0"}, "content_uri": f"puppet:///modules/demo/files/tree{tail}",
        }  # fmt: skip

    tree = {"/etc/tree": {"puppet:///modules/demo/tree": [entry("."), entry("sub/a")]}}
    files = files_of(plugins(), catalog(code_id="v1", recursive_metadata=tree), report())
    assert files.inlined == {"modules/demo/tree": True, "modules/demo/tree/sub/a": True}
    assert set(files.static) == {"modules/demo/files/tree", "modules/demo/files/tree/sub/a"}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "FILES", 5)
    many = {f"{n}.txt": b"x" for n in range(100)}
    files = files_of(*(part for n in range(9) for part in (listing(f"modules/m{n}", many), content(f"modules/c{n}"))))
    assert files.full
    assert len(files.checksums) == 10
    assert max(len(files.metadata_answers), len(files.fetched)) <= 2
    resources = [file(f"https://h{n}.example/a", title=f"/{n}") for n in range(50)]
    monkeypatch.setattr(observations, "RETAINED", 3)
    monkeypatch.setattr(observations, "FILES", 50)
    assert len(files_of(catalog(resources=resources)).elsewhere) == 3


def test_what_is_fetched_a_thousand_times_is_one_entry() -> None:
    files = files_of(catalog(), *(content(FILE) for _ in range(1000)))
    (entry,) = files.fetched.values()
    assert (entry.times, entry.first, entry.last) == (1000, 2, 1001)


# -- F01, F02 ------------------------------------------------------------------------------------------


def test_f01_needs_the_beginning_of_the_run() -> None:
    assert messages("F01", catalog(), content(FILE)) == [
        f"the content of {FILE} was fetched, but its metadata was not requested"
    ]
    assert messages("F01", metadata(OTHER), content(FILE)) == []  # the capture began in the middle of the run
    assert messages("F01", catalog(), content(FILE, status=404)) == []
    assert messages("F01", catalog(), listing("modules/demo", {}), content("modules/demo/deep/a")) == []
    assert len(messages("F01", catalog(), listing("modules/demo", {}), content("modules/demolition/a"))) == 1
    assert messages("F01", static_catalog(uri=False), content(FILE)) == []


def test_f01_does_not_accuse_when_memory_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "FILES", 2)
    tree = {f"{n}.txt": b"x" for n in range(9)}
    parts = [catalog(), *(listing(f"modules/{n}", tree) for n in "abc"), content("modules/c/1.txt")]
    assert messages("F01", *parts) == []
    assert len(messages("F01", catalog(), content("modules/c/1.txt"))) == 1


SOURCES = catalog(resources=[file(f"puppet:///{FILE}", f"puppet:///{OTHER}")])


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((SOURCES, missing(FILE), missing(OTHER)), True),
        ((SOURCES, missing(FILE), metadata(OTHER)), False),
        ((SOURCES, missing(FILE)), False),  # killed before it asked for the other
        ((SOURCES, missing(FILE), metadata(FILE), missing(OTHER)), False),
        ((SOURCES, metadata(FILE, status=500), missing(OTHER)), False),
        ((missing(FILE), missing(OTHER), SOURCES), False),  # not for this catalog
        ((catalog(), missing(FILE), missing(OTHER)), False),  # whose they are is not known
        ((missing(FILE), missing(OTHER)), False),
    ],
)
def test_f02_needs_every_source_to_be_missing(parts: tuple[ExamplePart, ...], says: bool) -> None:
    findings = found("F02", talk(plugins(), *parts, report(result="failed")))
    assert bool(findings) is says
    if says:
        assert findings[0].seqs == (2, 3, 4)
        assert findings[0].message == (
            f"File[/etc/app.conf]: none of its sources exists on the master ({FILE}, {OTHER})"
        )  # fmt: skip


def test_f02_a_local_source_may_have_been_used() -> None:
    local = catalog(resources=[file("/srv/app.conf", f"puppet:///{FILE}")])
    assert messages("F02", local, missing(FILE), report()) == []


def test_f02_a_directory_that_is_missing() -> None:
    tree = catalog(resources=[file("puppet:///modules/demo/tree", recurse=True)])
    lost = asked("file_metadatas/modules/demo/tree", status=404, text="Not Found: x")
    assert len(messages("F02", tree, lost, report())) == 1


# -- F03 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
def test_f03_checks_every_digest(algorithm: str) -> None:
    right = (metadata(FILE, b"new", algorithm=algorithm), content(FILE, b"new"))
    wrong = (metadata(FILE, b"old", algorithm=algorithm), content(FILE, b"new"))
    assert messages("F03", *right) == []
    (findings,) = found("F03", talk(*wrong))
    assert findings.seqs == (1, 2)
    assert FILE in findings.message
    assert f"{{{algorithm}}}" in findings.message


@pytest.mark.parametrize("checksum", ["md5lite", "sha256lite", "mtime", "ctime", "none", "crc32"])
def test_f03_never_accuses_by_what_is_no_digest_of_the_whole(checksum: str) -> None:
    document = {"path": "/x", "type": "file", "checksum": {"type": checksum, "value": f"{{{checksum}}}{'0' * 64}"}}
    assert messages("F03", asked(f"file_metadata/{FILE}", document), content(FILE, b"x")) == []


def test_f03_knows_only_the_last_metadata_and_of_this_environment() -> None:
    old, new = metadata(FILE, b"old"), metadata(FILE, b"new")
    assert messages("F03", old, new, content(FILE, b"new")) == []
    assert len(messages("F03", new, old, content(FILE, b"new"))) == 1
    assert messages("F03", metadata(FILE, b"old", environment="dev"), content(FILE, b"new")) == []
    assert messages("F03", old, metadata(OTHER, b"new"), content(OTHER, b"new")) == []
    link = {"type": "link", "destination": "/a", "checksum": {"type": "md5", "value": "{md5}" + "0" * 32}}
    assert messages("F03", old, asked(f"file_metadata/{FILE}", link), content(FILE, b"new")) == []
    assert messages("F03", content(FILE, b"new")) == []


def test_f03_by_a_listing_and_for_plugins() -> None:
    tree = asked(
        "file_metadatas/plugins",
        [{"relative_path": "facter/a.rb", "type": "file", "checksum": {"type": "md5", "value": "{md5}" + "0" * 32}}],
        query="&recurse=true",
    )
    assert len(messages("F03", tree, content("plugins/facter/a.rb", b"x"))) == 1
    assert len(messages("F03", listing("modules/demo", {"sub/a": b"old"}), content("modules/demo/sub/a", b"new"))) == 1
    assert messages("F03", listing("modules/demo", {"sub/a": b"new"}), content("modules/demo/sub/a", b"new")) == []


def test_f03_compression_is_undone_first() -> None:
    packed = {"Content-Encoding": "gzip"}
    for digest in ("sha256", "md5"):
        answer = metadata(FILE, b"new", algorithm=digest)
        assert messages("F03", answer, altered(content(FILE, gzip.compress(b"new")), answers=packed)) == []
        assert len(messages("F03", answer, altered(content(FILE, gzip.compress(b"old")), answers=packed))) == 1
        assert messages("F03", answer, altered(content(FILE, b"no gzip"), answers=packed)) == []  # S13


@pytest.mark.parametrize(
    "part",
    [
        altered(content(FILE, b""), request={"method": "HEAD"}),
        content(FILE, b"", status=304),
        content(FILE, b"ne", status=206),
        content(FILE, b"no", status=404),
        altered(content(FILE, b"ne"), error="peer closed connection"),
        altered(content(FILE, b"ne"), answers={"Content-Length": "3"}),
        altered(content(FILE, b"ne"), response={"lost": 1}),
    ],
)
def test_f03_judges_whole_contents_only(part: ExamplePart) -> None:
    assert messages("F03", metadata(FILE, b"new"), part) == []
    assert len(messages("F03", metadata(FILE, b"new"), content(FILE, b""))) == 1  # an empty file is a content
    assert len(messages("F03", metadata(FILE), altered(content(FILE, b"x"), answers={"Content-Length": "1"}))) == 1


@pytest.mark.parametrize(
    ("body", "code_id", "wrong"), [(b"content", "v1", False), (b"other", "v1", True), (b"other", "v2", False)]
)
def test_f03_static_content_is_what_the_catalog_says(body: bytes, code_id: str, wrong: bool) -> None:
    fetched = content(STATIC, body, code_id=code_id)
    findings = found("F03", talk(plugins(), static_catalog(), fetched, report()))
    assert bool(findings) is wrong
    assert all(finding.seqs == (2, 3) for finding in findings)


# -- F04 to F07 ----------------------------------------------------------------------------------------


def test_f04_is_one_notice_for_all_files() -> None:
    many = [part for n in range(9) for part in (content(f"modules/m/{n}"), content(f"modules/m/{n}"))]
    (findings,) = found("F04", talk(catalog(), *many, report()))
    assert findings.severity is Severity.NOTICE
    assert findings.message == "fetched more than once: modules/m/0, modules/m/1, modules/m/2 and 6 more"
    twice = (content(FILE), content(FILE, environment="dev"))
    assert messages("F04", catalog(), *twice, report()) == []
    assert messages("F04", content("plugins/a.rb"), content("plugins/a.rb"), catalog(), report()) == []


def _runs(*fetched: tuple[str, ...], certname: str = "node1.example") -> list[list[Record]]:
    return [
        talk(plugins(), catalog(uuid=f"u-{n}"), *(content(name) for name in names), report(uuid=f"u-{n}"),
             after=1800.0 * n, certname=certname)
        for n, names in enumerate(fetched)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fetched", "says"),
    [
        (((FILE,), (FILE,), (FILE,)), 1),
        (((FILE,), (FILE,)), 0),
        (((FILE,), (OTHER,), (FILE,)), 0),
        (((FILE,), (), (FILE,), (FILE,)), 0),
        (((FILE, OTHER), (FILE, OTHER), (FILE, OTHER)), 1),
        (((FILE,),) * 5, 3),
        ((("plugins/a.rb",),) * 4, 0),
    ],
)
def test_f05_counts_runs_in_a_row(fetched: tuple[tuple[str, ...], ...], says: int) -> None:
    assert len(found("F05", together(*_runs(*fetched)))) == says


def test_f05_other_nodes_have_their_own_runs() -> None:
    mine, others = _runs((FILE,), (FILE,)), _runs((FILE,), (FILE,), certname="node2.example")
    assert found("F05", together(*mine, *others)) == []


def test_f05_a_clone_has_its_own_runs() -> None:
    made = pki.sign(authorities()[1], private_key("clone").public_key(), "node1.example")
    leg = {"peer_chain": (made.public_bytes(Encoding.DER),)}
    clone = talk(*(altered(part, leg=leg) for part in (plugins(), catalog(), content(FILE), report())), after=900)
    assert found("F05", together(*_runs((FILE,), (FILE,)), clone)) == []
    assert len(found("F05", together(*_runs((FILE,), (FILE,), (FILE,)), clone))) == 1


@pytest.mark.parametrize(
    ("version", "severity"),
    [("2.7.26", "notice"), ("5.5.22", "notice"), ("6.29.0", "notice"), ("7.23.0", "warning"), ("8.28.1", "warning")],
)
def test_f06_is_a_default_up_to_6(version: str, severity: str) -> None:
    plugin_list = asked("file_metadatas/plugins", [], query="&recurse=true&checksum_type=md5")
    several = (plugin_list, catalog(), bucket(algorithm="md5"), bucket(b"x", algorithm="md5"), report())
    assert [finding.severity for finding in found("F06", talk(*several, version=version))] == [severity]


def test_f06_one_resource_may_choose() -> None:
    one = asked(f"file_metadata/{FILE}", {"type": "file"}, query="&checksum_type=md5")
    (findings,) = found("F06", talk(plugins(), catalog(), one, report()))
    assert findings.severity is Severity.NOTICE
    assert messages("F06", asked(f"file_metadata/{FILE}", {}, query="&checksum_type=md5lite"), report()) == []


def test_f07_quotes_both_sides() -> None:
    text = "Server Error: Unable to find a common checksum type between agent 'md5' and master 'sha256'"
    (message,) = messages("F07", catalog(status=500, text=text, form={"checksum_type": "md5"}))
    assert message == f"{text.removeprefix('Server Error: ')} (the agent sent checksum_type=md5)"
    assert messages("F07", catalog(status=500, text="Server Error: x")) == []
    assert messages("F07", bucket(method="HEAD", algorithm="md5", status=404)) == []
    assert messages("F07", bucket(method="HEAD", status=500)) == []


# -- F08 to F11 ----------------------------------------------------------------------------------------


def test_f08_only_for_what_names_a_version() -> None:
    (findings,) = found("F08", talk(plugins(), static_catalog(), content(FILE), report()))
    assert findings.seqs == (2, 3)
    assert messages("F08", static_catalog(), content(OTHER), report()) == []
    assert messages("F08", static_catalog(), content(FILE, status=404), report()) == []
    assert messages("F08", content(FILE), report()) == []


@pytest.mark.parametrize(("status", "says"), [(200, 0), (400, 1), (403, 1), (404, 1), (500, 1), (503, 0)])
def test_f09_is_any_refusal(status: int, says: int) -> None:
    part = asked(f"static_file_content/{STATIC}", b"no such thing", status=status, media="text/plain")
    assert messages("F09", part) == [f"static_file_content was answered {status}: no such thing"] * says


@pytest.mark.parametrize(("query", "names"), [("&code_id=", True), ("&code_id=&x=1", True), ("&code_id=v1", False)])
def test_f09_names_a_command_that_printed_nothing(query: str, names: bool) -> None:
    part = asked("static_file_content/modules/demo/files/a", b"no", status=400, media="text/plain", query=query)
    (message,) = messages("F09", part)
    assert message.endswith("the catalog has no code_id: code-id-command printed nothing") is names


def test_f09_without_a_certificate_is_t03() -> None:
    part = asked(f"static_file_content/{STATIC}", b"Forbidden", status=403, media="text/plain")
    assert messages("F09", part, certificate=False) == []
    part = asked(f"static_file_content/{STATIC}", b"", status=500, media="text/plain")
    assert messages("F09", part, certificate=False) == ["static_file_content was answered 500: no reason"]


def test_f10_counts_entries_and_bytes() -> None:
    def tree(count: int, length: int = 1) -> ExamplePart:
        return listing("modules/demo/tree", {f"{n:0{length}}": b"" for n in range(count)})

    assert messages("F10", tree(1000)) == []
    assert messages("F10", tree(1001)) == ["modules/demo/tree contains 1001 files and directories"]
    (message,) = messages("F10", tree(900, 1200))
    assert message.startswith("the listing of modules/demo/tree is 1.")


def test_f10_plugins_are_many_everywhere() -> None:
    many = [{"relative_path": str(n), "type": "file"} for n in range(3000)]
    assert messages("F10", asked("file_metadatas/plugins", many, query="&recurse=true"), report()) == []


def test_f11_says_it_once() -> None:
    slowly = [slow(content(f"modules/m/{n}"), 3 + n) for n in range(4)]
    others = (slow(content(FILE), 1.5), slow(content(FILE, status=404), 9))
    (findings,) = found("F11", talk(catalog(), *slowly, *others, report()))
    assert findings.severity is Severity.NOTICE
    assert findings.seqs == (2, 3, 4, 5)


# -- F12 to F16 ----------------------------------------------------------------------------------------


def test_f12_names_file_and_size() -> None:
    large = bytes(12_000_000)
    assert messages("F12", bucket(large)) == ["/etc/app.conf was backed up to the master's filebucket, 12 MB"]
    assert messages("F12", bucket(large, method="GET")) == []
    assert messages("F12", bucket(bytes(10_000_000))) == []


def test_f13_the_masters_own_certificate_may() -> None:
    records = talk(catalog(), bucket(method="GET"))
    assert len(found("F13", records)) == 1
    assert messages("F13", bucket(method="GET"), certificate=False) == []  # refused: T03
    assert messages("F13", bucket(method="GET", status=404)) == []
    (findings,) = found("F13", talk(catalog(), bucket(method="GET"), version="3.8.7", master_version="3.8.7"))
    assert findings.severity is Severity.NOTICE


@pytest.mark.parametrize("extension", ["pp_cli_auth", "1.3.6.1.4.1.34380.1.3.39"])
def test_f13_by_extension(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = analyzer._leaf

    def leaf(chain: tuple[bytes, ...]) -> d.Certificate | None:
        import msgspec

        found = real(chain)
        return msgspec.structs.replace(found, extensions={extension: "true"}) if found else None

    monkeypatch.setattr(analyzer, "_leaf", leaf)
    assert messages("F13", catalog(), bucket(method="GET")) == []


def test_f14_only_what_was_sent_whole() -> None:
    (message,) = messages("F14", bucket(b"old", digest_of=b"other"))
    assert message.startswith("/etc/app.conf: the body sent does not have the digest sha256/")
    assert messages("F14", bucket(b"old", digest_of=b"other", method="HEAD")) == []
    assert messages("F14", altered(bucket(b"old", digest_of=b"other"), error="Client disconnected.")) == []
    assert messages("F14", bucket(b"old", algorithm="md5")) == []
    nameless = {"target": f"/puppet/v3/file_bucket_file/md5/{'0' * 32}?environment=production"}
    assert messages("F14", altered(bucket(b"old"), request=nameless))[0].startswith("a file: ")


def test_f15_one_notice_a_server() -> None:
    resources = [file(f"http://files.example/{n}", title=f"/{n}") for n in range(4)]
    pinned = file("https://other.example/a", title="/a", checksum_value="0" * 64)
    findings = found("F15", talk(plugins(), catalog(resources=[*resources, pinned]), report()))
    assert [finding.message for finding in findings] == [
        "4 files come from http://files.example, 4 of them without checksum_value",
        "1 file comes from https://other.example",
    ]
    assert {finding.severity for finding in findings} == {Severity.NOTICE}
    assert messages("F15", catalog(resources=resources), catalog(status=500)) == [findings[0].message]


@pytest.mark.parametrize(
    ("path", "query", "says"),
    [
        ("file_metadatas/pluginfacts", "&recurse=true&source_permissions=use", False),
        ("file_metadatas/plugins", "&recurse=true&source_permissions=use", True),
        ("file_metadatas/modules/demo/tree", "&source_permissions=use", True),
        ("file_metadata/modules/demo/a", "&source_permissions=ignore", False),
    ],
)
def test_f16_pluginfacts_are_meant_to(path: str, query: str, says: bool) -> None:
    assert bool(messages("F16", asked(path, [] if "metadatas" in path else {}, query=query))) is says


def test_f16_names_the_default() -> None:
    part = asked("file_metadata/modules/demo/a", {}, query="&source_permissions=use")
    assert messages("F16", part, part) == ["permissions come from the master's files"]
    query = asked("/production/file_metadata/modules/demo/a?source_permissions=use", {})
    (findings,) = found("F16", talk(query, version="3.8.7"))
    assert findings.message.endswith(" (the default of agents up to 3)")
    assert findings.severity is Severity.NOTICE


def test_each_file_that_was_cut_off_is_named() -> None:
    names = [f"modules/demo/{name}.conf" for name in "abc"]
    cut = [altered(content(name, b"con"), answers={"Content-Length": "7"}, error=CLOSED) for name in names]
    assert messages("S14", plugins(), catalog(), *map(metadata, names), *cut, report(result="failed")) == [
        f"file_content of {name} was cut off before all 7 bytes arrived" for name in names
    ]
