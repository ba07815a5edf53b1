"""What nodes do in the matrix, and what is expected of it, version by version."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509

from inspector.host import pki
from tests.real.as_http_proxy import blocks
from tests.real.versions.engine import Expected, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.as_http_proxy import Node
    from tests.real.versions.engine import Pair, Scene, Way

DAY = timedelta(days=1)


def fixed(expected: Expected) -> Callable[[Pair, Way], Expected]:
    """Expect the same of all versions, on all roads."""
    return lambda _pair, _way: expected


# -- ways to begin ----------------------------------------------------------------------------------------------------


def first_run(scene: Scene) -> None:
    scene.agent()


def first_run_with_ec(scene: Scene) -> None:
    scene.configure(key_type="ec")
    scene.agent()


def first_and_steady(scene: Scene) -> None:
    scene.enrol()
    scene.agent()
    scene.agent()


def waits_until_signed(scene: Scene) -> None:
    """The agent asks again and again."""
    running = scene.begin("agent", "-t", "--color=false", "--waitforcert", "2")
    request = scene.master.cadir / f"requests/{scene.node.certname}.pem"
    scene.wait_for(request.exists)
    time.sleep(5)
    scene.master.sign(scene.node.certname)
    scene.end(running)


# -- catalogs and files -----------------------------------------------------------------------------------------------


def enrolled_run(scene: Scene) -> None:
    scene.enrol()
    scene.agent()


def plugins(scene: Scene) -> None:
    """A run with plugins of every kind, and one more after a file was lost on the node."""
    scene.enrol()
    scene.agent("--environment", "plugged")
    (scene.node.agent.vardir / "lib/facter/plugged.rb").unlink()
    scene.agent("--environment", "plugged")


def static_catalog(scene: Scene) -> None:
    """A run with versioned code, and one more after a file was changed by hand."""
    scene.enrol()
    scene.agent("--environment", "static")
    (scene.node.agent.target / "single.txt").write_text("changed by hand\n")
    scene.agent("--environment", "static")


def slow_compile_impatient(scene: Scene) -> None:
    scene.enrol()
    scene.configure(http_read_timeout="11s")
    scene.agent()
    time.sleep(4)  # the proxy waits for the master longer than its agent


# -- certificates -----------------------------------------------------------------------------------------------------


def renewal(scene: Scene) -> None:
    """The certificate ends within the 30 days in which an agent asks for a new one."""
    scene.enrol(3 * DAY)
    scene.agent()


def revoked(scene: Scene) -> None:
    scene.enrol(signed=True)
    scene.master.revoke(scene.node.certname)
    scene.agent()


def _spoil(node: Node, *, expired: bool) -> None:
    """Replace the CRL of the CA that signs in the node's crl.pem by an expired one, or take the root's away."""
    authority = pki.read_authority(node.master.cadir)
    if not expired:
        own = [
            block for block in blocks(node.crl) if x509.load_pem_x509_crl(block).issuer == authority.certificate.subject
        ]
        node.crl.write_bytes(b"".join(own))
        return
    now = datetime.now(UTC)
    old = pki.make_crl(authority, last_update=now - 9 * DAY, next_update=now - DAY)
    others = (block for block in blocks(node.crl) if x509.load_pem_x509_crl(block).issuer != old.issuer)
    node.crl.write_bytes(b"".join((pki.pem(old), *others)))


def expired_crl(scene: Scene) -> None:
    scene.enrol()
    _spoil(scene.node, expired=True)
    scene.agent()


def expired_crl_of_last_week(scene: Scene) -> None:
    """Old enough for an agent 8 to ask for a new one."""
    scene.enrol()
    _spoil(scene.node, expired=True)
    week = time.time() - 7 * 86400
    os.utime(scene.node.crl, (week, week))
    scene.agent()


def incomplete_crl(scene: Scene) -> None:
    scene.enrol()
    _spoil(scene.node, expired=False)
    scene.agent()


def incomplete_crl_of_the_ca(scene: Scene) -> None:
    """The CA serves its own CRL without the root's to a node that has none."""
    scene.enrol()
    place = scene.master.cadir / "ca_crl.pem"
    sound = place.read_bytes()
    scene.node.crl.unlink()
    scene.node.ca.unlink()
    place.write_bytes(blocks(place)[0])
    try:
        scene.agent()
    finally:
        place.write_bytes(sound)


def mismatched_key(scene: Scene) -> None:
    scene.enrol()
    scene.node.key.write_bytes(pki.key_pem(pki.new_key(2048)))
    scene.agent()


def lost_key(scene: Scene) -> None:
    scene.enrol(signed=True)
    scene.node.key.unlink()
    scene.node.certificate.unlink()
    scene.agent()


# -- where a node asks ------------------------------------------------------------------------------------------------


def other_environment(scene: Scene) -> None:
    scene.enrol()
    scene.agent("--environment", "testing")


def absent_environment(scene: Scene) -> None:
    scene.enrol()
    scene.agent("--environment", "nowhere")


def server_list(scene: Scene) -> None:
    """The first server of two is down."""
    scene.enrol()
    scene.configure(server_list=f"{scene.server}:1,{scene.server}:{scene.port}")
    scene.agent()


# -- tools ------------------------------------------------------------------------------------------------------------


def ssl(scene: Scene) -> None:
    """What follows the bootstrap asks nobody."""
    for action in ("bootstrap", "verify", "show"):
        scene.puppet("ssl", action, *(("--waitforcert", "0") if action == "bootstrap" else ()))


def ssl_waiting(scene: Scene) -> None:
    """Nobody signs."""
    scene.puppet("ssl", "bootstrap", "--waitforcert", "0")


def facts_upload(scene: Scene) -> None:
    scene.enrol()
    scene.puppet("facts", "upload")


def lookup(scene: Scene) -> None:
    """A node has no data of its own: nothing is found."""
    scene.enrol()
    scene.puppet("lookup", "anything", "--default", "nothing")


def filebucket(scene: Scene) -> None:
    scene.enrol()
    path, content = scene.node.base / "stored.txt", b"stored by %s\n" % scene.node.certname.encode()
    path.write_bytes(content)
    scene.puppet("filebucket", "backup", str(path))
    scene.puppet("filebucket", "get", hashlib.sha256(content).hexdigest())


def resource(scene: Scene) -> None:
    scene.enrol()
    scene.puppet("resource", "file", str(scene.node.base))


# -- what is expected -------------------------------------------------------------------------------------------------

FRESH, FIRST, STEADY = (
    "certificates node plugins catalog files report", "node plugins catalog files report",
    "plugins catalog files report",
)  # fmt: skip

UNSIGNED = "Couldn't fetch certificate from CA server; you might still need to sign this agent's certificate"


def a_run(pair: Pair, outcome: str, *rules: str, cause: str = "", newer: bool = True) -> str:
    """Describe a run as ``engine.described`` does. ``rules`` are its errors and warnings, besides that the agent is
    newer than its master: that is found wherever its version is recorded (``newer``)."""
    found = sorted({*rules, *(("S16 warning",) if newer and pair.agents > pair.masters else ())})
    return ", ".join([outcome, *([f"cause {cause}"] if cause else []), *found])


def _compiled(pair: Pair) -> tuple[str, ...]:
    """What agents print from 8 on, where a master from 8 on names itself in the catalog."""
    both = min(pair.agents, pair.masters) >= 8
    return (rf"Notice: Catalog compiled by master{pair.masters}\.example",) if both else ()


def of_bootstrap(pair: Pair, _: Way) -> Expected:
    words = ("Info: Creating a new RSA SSL key for", "Info: Downloaded certificate for", *_compiled(pair))
    return Expected((2,), (a_run(pair, f"complete ({FRESH})"),), words)


def of_bootstrap_with_ec(pair: Pair, _: Way) -> Expected:
    """The Ruby of Debian 12 is newer than agent 7, which changes a key after it was made."""
    made = r"Info: Creating a new EC SSL key for \S+ using curve prime256v1"
    if pair.agents < 8:
        words = (made, "Error: pkeys are immutable on OpenSSL 3.0")
        return Expected((1,), (a_run(pair, "unfinished (certificates)"),), words, offered=False)
    return Expected((2,), (a_run(pair, f"complete ({FRESH})"),), (made, *_compiled(pair)))


def of_first_and_steady(pair: Pair, _: Way) -> Expected:
    runs = tuple(a_run(pair, f"complete ({phases})") for phases in (FIRST, STEADY))
    return Expected((2, 0), runs, ("Applied catalog in", *_compiled(pair)))


def of_plugins(pair: Pair, _: Way) -> Expected:
    words = (r"plugged/twice.rb\]/ensure: defined content", r"facts.d/rack.yaml\]/ensure: defined content")
    runs = (a_run(pair, f"complete ({STEADY})"),) * 2
    return Expected((2, 0), runs, words, ("plugin_list", "plugin_file"))


def of_static_catalog(pair: Pair, _: Way) -> Expected:
    runs = (a_run(pair, f"complete ({STEADY})"),) * 2
    return Expected((2, 2), runs, (r"single.txt\]/content: content changed",), ("static_file_content",))


def of_compile_error(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, "failed (node plugins catalog report)", "R20 error", "S01 error", cause="S01")
    own = ("Failed to apply catalog: undefined method `name' for nil",) if pair.agents > 8 else ()
    return Expected((1,), (run,), ("500 on SERVER: Server Error: Evaluation Error: .* no role for this node", *own))


def of_slow_compile(pair: Pair, _: Way) -> Expected:
    return Expected((2,), (a_run(pair, f"complete ({FIRST})", "S08 warning", cause="S08"),))


def of_impatience(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, "failed (node plugins catalog report)", "R20 error", "S08 warning", cause="S08")
    return Expected((1,), (run,), ("Net::ReadTimeout",))


def of_missing_file(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, f"failed ({FIRST})", "F02 error", "P01 error", cause="F02")
    return Expected((6,), (run,), (r"Could not evaluate: Could not retrieve information from environment production",))


def of_unreadable_file(pair: Pair, _: Way) -> Expected:
    return Expected((6,), (a_run(pair, f"failed ({FIRST})", "F18 error", "P01 error", cause="F18"),))


def of_renewal(pair: Pair, _: Way) -> Expected:
    """An agent 7 does not ask; a master 7 refuses what it does not know."""
    if pair.agents < 8:
        return Expected((2,), (a_run(pair, f"complete ({FIRST})"),), offered=False)
    if pair.masters < 8:
        run = a_run(pair, f"complete ({FRESH})", "B36 warning", cause="B36")
        return Expected((2,), (run,), ("Failed to automatically renew certificate: 403 Forbidden",), offered=False)
    run = a_run(pair, f"complete ({FRESH})")
    return Expected((2,), (run,), ("Renewed client certificate",), ("renewal",))


def of_revoked(pair: Pair, way: Way) -> Expected:
    """A proxy in front knows the CRL and refuses the connection; with `run` the master does, with Java's alert for all
    that it does not like about a certificate."""
    if way == "run":
        rules = ("R20 error", "T05 error", "T09 error")
        run = a_run(pair, "refused (certificates node plugins catalog report)", *rules, cause="T05", newer=False)
        return Expected((1,), (run,), ("SSL_read: .*alert certificate unknown",))
    run = a_run(pair, "refused (certificates)", "T05 error", "T09 error", cause="T05", newer=False)
    return Expected((1,), (run,), ("certificate revoked",))


def nothing_asked(message: str) -> Callable[[Pair, Way], Expected]:
    """The agent stops before it asks anybody."""
    return fixed(Expected((1,), (), (message,)))


def of_expired_crl_of_last_week(pair: Pair, way: Way) -> Expected:
    """An agent 8 asks for a new one, over a connection that needs a valid one."""
    if pair.agents < 8:
        return nothing_asked("The CRL issued by 'CN=Puppet CA: .*' has expired")(pair, way)
    run = a_run(pair, "refused (certificates)", "T08 error", cause="T08", newer=False)
    return Expected((1,), (run,), ("Info: Refreshing CRL", "CRL has expired for CN="))


def of_incomplete_crl_of_the_ca(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, "unfinished (certificates)", "B13 error", cause="B13")
    return Expected((1,), (run,), ("The CRL issued by 'CN=Puppet Root CA: .*' is missing",))


def of_lost_key(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, "waiting (certificates)", "B18 error", "B23 error", cause="B18")
    return Expected((1,), (run,), ("does not match its private key",))


def of_nobody_signs(pair: Pair, _: Way) -> Expected:
    return Expected((1,), (a_run(pair, "waiting (certificates)"),), (UNSIGNED,))


def of_signed_later(pair: Pair, _: Way) -> Expected:
    return Expected((2,), (a_run(pair, f"complete ({FRESH})"),), (UNSIGNED,))


def of_other_environment(pair: Pair, _: Way) -> Expected:
    return Expected((2,), (a_run(pair, f"complete ({STEADY})"),), ("Using environment 'testing'",))


def of_absent_environment(pair: Pair, _: Way) -> Expected:
    words = (
        "Environment 'nowhere' not found on server, skipping initial pluginsync",
        "Local environment: 'nowhere' doesn't match server specified environment 'production'",
    )
    return Expected((2,), (a_run(pair, f"complete ({STEADY})", "R09 warning", cause="R09"),), words)


def of_classified(pair: Pair, _: Way) -> Expected:
    return Expected((2,), (a_run(pair, f"complete ({FIRST})"),), ("Using environment 'testing'",))


def of_server_list(pair: Pair, way: Way) -> Expected:
    """With `run` the connection that fails is seen, too; a proxy is only reached by those that succeed."""
    if way == "run":
        return Expected((2,), (a_run(pair, f"complete (certificates other {FIRST})", "T18 warning", cause="T18"),))
    return Expected((2,), (a_run(pair, f"complete (other {FIRST})"),))


def of_ssl(pair: Pair, _: Way) -> Expected:
    run = a_run(pair, "puppet ssl bootstrap complete (certificates)")
    return Expected((0, 0, 0), (run,), ("Completed SSL initialization", "Verified client certificate"))


def of_facts_upload(pair: Pair, _: Way) -> Expected:
    return Expected((0,), (a_run(pair, "puppet facts upload complete (report)"),), asked=("facts",))


def of_filebucket(pair: Pair, _: Way) -> Expected:
    """That a node reads there is worth a warning, who ever lets it: each may read what all others have backed up."""
    name = "puppet filebucket complete (files)"
    return Expected((0, 0), (a_run(pair, name), a_run(pair, name, "F13 warning")), asked=("file_bucket_file",))


MISSING_ROOT = nothing_asked("The CRL issued by 'CN=Puppet Root CA: .*' is missing")
EXPIRED = nothing_asked("The CRL issued by 'CN=Puppet CA: .*' has expired, verify time is synchronized")
NO_REQUEST = fixed(Expected((0,)))
SCENARIOS = (
    Scenario(name="bootstrap, RSA key", autosigned=True, play=first_run, expected=of_bootstrap, upgrade=True),
    Scenario(name="bootstrap, EC key", autosigned=True, play=first_run_with_ec, expected=of_bootstrap_with_ec,
             upgrade=True),
    Scenario(name="first and steady run", play=first_and_steady, expected=of_first_and_steady, upgrade=True),
    Scenario(name="plugins", play=plugins, expected=of_plugins, upgrade=True),
    Scenario(name="static catalog", play=static_catalog, expected=of_static_catalog, upgrade=True),
    Scenario(name="compile error", play=enrolled_run, expected=of_compile_error, upgrade=True),
    Scenario(name="slow compile", play=enrolled_run, expected=of_slow_compile, alone=True),
    Scenario(name="slow compile, impatient agent", play=slow_compile_impatient, expected=of_impatience, alone=True),
    Scenario(name="file missing", play=enrolled_run, expected=of_missing_file),
    Scenario(name="file unreadable", play=enrolled_run, expected=of_unreadable_file),
    Scenario(name="renewal", play=renewal, expected=of_renewal, upgrade=True),
    Scenario(name="revoked", play=revoked, expected=of_revoked),
    Scenario(name="expired CRL", play=expired_crl, expected=EXPIRED),
    Scenario(name="expired CRL of last week", play=expired_crl_of_last_week, expected=of_expired_crl_of_last_week),
    Scenario(name="incomplete CRL", play=incomplete_crl, expected=MISSING_ROOT),
    Scenario(name="incomplete CRL of the CA", play=incomplete_crl_of_the_ca, expected=of_incomplete_crl_of_the_ca,
             alone=True, spoils_crl=True),
    Scenario(name="mismatched key", play=mismatched_key, expected=nothing_asked("does not match its private key")),
    Scenario(name="lost key", play=lost_key, expected=of_lost_key),
    Scenario(name="waitforcert, nobody signs", play=first_run, expected=of_nobody_signs),
    Scenario(name="waitforcert, signed", play=waits_until_signed, expected=of_signed_later),
    Scenario(name="environment that exists", play=other_environment, expected=of_other_environment),
    Scenario(name="environment that does not", play=absent_environment, expected=of_absent_environment),
    Scenario(name="environment of the classifier", play=enrolled_run, expected=of_classified),
    Scenario(name="server_list", play=server_list, expected=of_server_list),
    Scenario(name="puppet ssl", autosigned=True, play=ssl, expected=of_ssl),
    Scenario(name="puppet ssl, nobody signs", play=ssl_waiting, expected=of_nobody_signs),
    Scenario(name="puppet facts upload", play=facts_upload, expected=of_facts_upload),
    Scenario(name="puppet lookup", play=lookup, expected=NO_REQUEST),
    Scenario(name="puppet filebucket", play=filebucket, expected=of_filebucket),
    Scenario(name="puppet resource", play=resource, expected=NO_REQUEST),
)  # fmt: skip
