from inspector.protocol.puppetdb import obstacles
from inspector.rules.kit import *
from inspector.rules.puppetdb_refuses import LOG, named


@rule(
    "D03",
    Severity.ERROR,
    at=(Kind.PUPPETDB_COMMAND,),
    title="PuppetDB accepts a value that it cannot store",
    fix=(
        on_master("change what has the value: the resource in the manifest, or the fact on the node"),
        on_puppetdb("see what it wrote of it", LOG),
    ),
    source="docs/protocol.md#endpoint-puppetdb_command",
    event=True,
    good=lambda: [
        talk(
            stored(values={"a": "x\0y", "b": {"k" * 2000: 1}, "n" * 1024: [1]}),
            stored("replace_catalog", resources=[_resource(parameters={"content": "a\0b"}), _resource("abc" * 3000)]),
            stored("store_report"),
        )
    ],
    bad=lambda: [
        talk(stored(values={"n" * 1025: 1})),
        talk(stored(values={"a": [{"x\0y": 1}]})),
        talk(stored("replace_catalog", resources=[_resource("a\0b")])),
        talk(stored("replace_catalog", resources=[_resource("".join(map(chr, range(300, 3000))))])),
        talk(stored("store_report", resources=[_changed("x\0y")])),
    ],
)  # fmt: skip
def stores_nothing(case: ExchangeCase) -> Iterator[Statement]:
    """PuppetDB answers 200 as soon as it has the command, and stores it later. One with this value it cannot store: it
    tries again for hours, or drops it. The agent and the master see nothing of it, their run is well; PuppetDB keeps
    what it had of the node before: old facts, an old catalog without the new exported resources, or no report."""
    document = case.step.request
    if not case.accepted or not isinstance(document, d.Command):
        return
    found = next(obstacles(document.payload), None)
    if found is not None:
        begin = found.text.partition("\0")[0]
        text = cut(begin + "\\u0000" * (begin != found.text), 40)
        yield Statement(
            f"{named(case)} was accepted and is not stored: {cut(found.where)} ({text}): {found.why}",
            at=(places.body("request", begin[:40]), places.REQUEST_LINE),
        )


def _resource(title: str = "a", **fields: object) -> dict[str, object]:
    return {"type": "Notify", "title": title, "tags": ["notify"], "exported": False, "parameters": {}} | fields


def _changed(message: str) -> dict[str, object]:
    event = {"status": "success", "property": "message", "message": message}
    return {"resource_type": "Notify", "resource_title": "a", "skipped": False, "events": [event]}
