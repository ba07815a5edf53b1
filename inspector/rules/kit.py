"""What rules are made of, for ``from inspector.rules.kit import *``: the cases, what a statement names, the words of
messages and the steps of fixes, and the examples."""

from collections.abc import Iterator

from inspector import regex
from inspector.clocks import DAY
from inspector.model import Phase, Record, Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.certificates import ALREADY, REQUESTED, REVOKED, SIGNED
from inspector.protocol.documents import NO_ENVIRONMENT
from inspector.protocol.kinds import BOOTSTRAP, CONTENT, METADATA, PARSED, PUPPETDB, RUN, Kind
from inspector.rules import (
    AFTER_BOOTSTRAP,
    ANOTHER_KEY,
    NO_CATALOG,
    NO_CATALOG_NO_REPORT,
    NO_TRUST,
    NOT_COMPILED,
    OLD,
    SINCE_4,
    SINCE_6,
    SINCE_6_4,
    SINCE_8,
    On,
    places,
    rule,
)  # fmt: skip
from inspector.rules.cases import ExchangeCase, HandshakeCase, RunCase, Statement
from inspector.rules.fixes import Fix, advice, at_openvox_ca, group, on_ca, on_master, on_node, on_proxy, on_puppetdb
from inspector.rules.words import (
    as_printed,
    compile_error,
    cut,
    in_a_row,
    lasting,
    major,
    media_type,
    reason,
    retry_after,
    some,
    utc,
    waited,
    whole,
)  # fmt: skip
from inspector.runs.examples import (
    MASTER,
    NAME,
    ExamplePart,
    altered,
    answered_by,
    answering_chain,
    asked,
    asking_for,
    bucket,
    ca,
    carried,
    catalog,
    content,
    crl,
    csr,
    issued,
    listing,
    made,
    metadata,
    node,
    not_issued,
    of_openvox_ca,
    plugins,
    querying,
    refused,
    renewal,
    report,
    slow,
    stored,
    talk,
    together,
    unanswered,
    unconnected,
    wait,
)  # fmt: skip
from inspector.runs.run import Run
from inspector.text import brief

__all__ = [
    "AFTER_BOOTSTRAP", "ALREADY", "ANOTHER_KEY", "BOOTSTRAP", "CONTENT", "DAY", "MASTER", "METADATA", "NAME",
    "NOT_COMPILED", "NO_CATALOG", "NO_CATALOG_NO_REPORT", "NO_ENVIRONMENT", "NO_TRUST", "OLD", "PARSED", "PUPPETDB",
    "REQUESTED", "REVOKED", "RUN", "SIGNED", "SINCE_4", "SINCE_6", "SINCE_6_4", "SINCE_8", "ExamplePart",
    "ExchangeCase", "Fix", "HandshakeCase", "Iterator", "Kind", "On", "Phase", "Record", "Run", "RunCase", "Severity",
    "Statement", "Visible", "advice", "altered", "answered_by", "answering_chain", "as_printed", "asked", "asking_for",
    "at_openvox_ca", "brief", "bucket", "ca", "carried", "catalog", "compile_error", "content", "crl", "csr", "cut",
    "d", "group", "in_a_row", "issued", "lasting", "listing", "made", "major", "media_type", "metadata", "node",
    "not_issued", "of_openvox_ca", "on_ca", "on_master", "on_node", "on_proxy", "on_puppetdb", "places", "plugins",
    "querying", "reason", "refused", "regex", "renewal", "report", "retry_after", "rule", "slow", "some", "stored",
    "talk", "together", "unanswered", "unconnected", "utc", "wait", "waited", "whole",
]  # fmt: skip
