"""The files that a catalog names: single ones, directories, those of static catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.model import Response
from inspector.rehearsal import compiling, fetching
from inspector.runs.examples import catalog, content, talk
from inspector.runs.examples import metadata as example_metadata
from tests.support.captures import save
from tests.support.compared import decoded, file
from tests.support.rehearsals import compiled, metadata, new_master

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Request
    from tests.conftest import Run

A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
"""The digest of "a"."""


def test_the_files_of_a_catalog(tmp_path: Path) -> None:
    def sources(*_: Any) -> list[dict[str, Any]]:
        return [
            file("/a", source="puppet:///modules/m/a"),
            file("/b", source=["puppet:///modules/m/none", "puppet:///modules/m/b"]),
            file("/c", source="puppet://elsewhere.example/modules/m/c"),
        ]

    with new_master(tmp_path, sources, files={"modules/m/a": b"a", "modules/m/b": b"b"}) as master:
        compiled(master, files=True, known={"modules/m/a": A})
    assert [(request.method, request.path) for request, _ in master.received[1:]] == [
        ("GET", "/puppet/v3/file_metadata/modules/m/a"),
        ("GET", "/puppet/v3/file_metadata/modules/m/none"),
        ("GET", "/puppet/v3/file_metadata/modules/m/b"),
        ("GET", "/puppet/v3/file_content/modules/m/b"),
    ]


def test_the_parameters_of_a_resource_are_those_of_its_request(tmp_path: Path) -> None:
    def sources(*_: Any) -> list[dict[str, Any]]:
        return [
            file("/a", source="puppet:///modules/m/a", links="follow", source_permissions="use", checksum="md5"),
            file("/b", source="puppet:///modules/m/b", links="a&b=c", checksum=["md5"]),
        ]

    with new_master(tmp_path, sources, files={"modules/m/a": b"a", "modules/m/b": b"b"}) as master:
        compiled(master, files=True)
    assert [request.target.partition("?")[2] for request, _ in master.received[1:] if "metadata" in request.target] == [
        "links=follow&checksum_type=md5&source_permissions=use&environment=production",
        "links=manage&checksum_type=sha256&source_permissions=ignore&environment=production",
    ]


def test_a_master_that_is_too_busy_for_a_file_is_asked_again(run: Run, tmp_path: Path) -> None:
    def sources(*_: Any) -> list[dict[str, Any]]:
        return [file("/a", source="puppet:///modules/m/a")]

    busy = [2]

    def before(request: Request) -> Response | None:
        if "file_metadata" not in request.target or not busy[0]:
            return None
        busy[0] -= 1
        return Response((("Retry-After", "0"),), b"", status=503)

    made = talk(catalog(resources=sources()), example_metadata("modules/m/a", b"a"), content("modules/m/a", b"a"))
    source = save(tmp_path / "a.sqlite", *made)
    words = ["rehearse", source, "-o", tmp_path / "new.sqlite", "--files"]
    with new_master(tmp_path, sources, files={"modules/m/a": b"a"}, before=before) as master:
        assert "not served" not in run(*words, *master.v4)[1]
        (tmp_path / "new.sqlite").unlink()
        busy[0] = compiling.ATTEMPTS  # until it gives up
        assert "not served (503)" in run(*words, *master.v4)[1]
        assert "not served" not in run(*words, *master.v4, "--resume")[1]


def test_what_is_in_a_directory(tmp_path: Path) -> None:
    def tree(*_: Any) -> list[dict[str, Any]]:
        return [
            file("/dir", source="puppet:///modules/m/dir", recurse="remote", ignore=["*.bak", "x"], recurselimit=2),
            file("/all", source=["puppet:///modules/m/one", "puppet:///modules/m/two"], recurse=True,
                 sourceselect="all"),
        ]  # fmt: skip

    contents = {"modules/m/dir/a": b"a", "modules/m/dir/b": b"b", "modules/m/one/c": b"c", "modules/m/two/d": b"d"}
    with new_master(tmp_path, tree, files=contents) as master:
        compiled(master, files=True, known={"modules/m/dir/a": A})
    query = "links=manage&checksum_type=sha256&source_permissions=ignore&environment=production"
    assert [request.target.removeprefix("/puppet/v3/") for request, _ in master.received[1:]] == [
        f"file_metadatas/modules/m/dir?recurse=true&recurselimit=2&ignore=%2A.bak&ignore=x&{query}",
        "file_content/modules/m/dir/b?environment=production",
        f"file_metadatas/modules/m/one?recurse=true&{query}",
        "file_content/modules/m/one/c?environment=production",
        f"file_metadatas/modules/m/two?recurse=true&{query}",
        "file_content/modules/m/two/d?environment=production",
    ]


def test_the_files_of_a_static_catalog(tmp_path: Path) -> None:
    def described(name: str, content: bytes) -> dict[str, Any]:
        module, path = name.split("/")
        return metadata(f"modules/{name}", content) | {
            "source": f"puppet:///modules/{name}", "content_uri": f"puppet:///modules/{module}/files/{path}",
        }  # fmt: skip

    static = {
        "code_id": "abc&d",
        "metadata": {"/a": described("m/a", b"a"), "/b": described("m/b", b"b")},
        "recursive_metadata": {"/dir": {"puppet:///modules/m/dir": [
            described("m/dir", b"") | {"relative_path": ".", "type": "directory"},
        ]}},
    }  # fmt: skip

    def sources(*_: Any) -> list[dict[str, Any]]:
        return [
            file("/a", source="puppet:///modules/m/a"), file("/b", source="puppet:///modules/m/b"),
            file("/dir", source="puppet:///modules/m/dir", recurse=True),
        ]  # fmt: skip

    with new_master(tmp_path, sources, catalog=static, files={"modules/m/files/b": b"b"}) as master:
        compiled(master, files=True, known={"modules/m/a": A})
    assert [request.target for request, _ in master.received[1:]] == [
        "/puppet/v3/static_file_content/modules/m/files/b?environment=production&code_id=abc%26d"
    ]


def test_sources_at_this_master() -> None:
    made = decoded([
        file("/dir", source="puppet:///modules/m/dir", recurse=True), file("/text", content="x"),
        file("/odd", source={"a": 1}), file("/plain", source="puppet:///modules/m/plain/", recurse=False),
        file("/away", source="puppet://elsewhere.example/modules/m/c"),
    ])  # fmt: skip
    assert [(found.names, found.recursive, found.every) for found in fetching.sources_of(made)] == [
        (["modules/m/dir"], [("recurse", "true")], False), (["modules/m/plain"], None, False),
    ]  # fmt: skip
