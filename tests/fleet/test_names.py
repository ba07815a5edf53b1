"""What captures are called: by their files, and by more where files have the same name."""

from __future__ import annotations

import duckdb

from inspector.fleet.names import CaptureNames


def test_a_run_is_named_by_the_file_of_its_capture_as_long_as_that_says_which() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE captures AS FROM (VALUES ('01', 'paris', 'a.sqlite'), ('02', 'paris', 'b.sqlite'), "
            "('03', 'rome', 'b.sqlite'), ('04', 'oslo', 'shared capture'), ('05', 'oslo', 'shared capture'), "
            "('06', 'oslo', '')) t(capture, site, name)"
        )
        names = CaptureNames.of(connection)
    assert [names.run(f"{number:02}:7") for number in range(1, 8)] == [
        "a.sqlite:7", "paris/b.sqlite:7", "rome/b.sqlite:7", "oslo/shared capture (04):7",
        "oslo/shared capture (05):7", "06:7", "07:7",
    ]  # fmt: skip
