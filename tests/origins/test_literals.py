"""Which templates are found in a source file (the samples are invented)."""

from __future__ import annotations

from tests.origins import literals
from tests.origins.literals import BLANK, Literal

RUBY = """
class Reactor < Machine
  def start(speed)
    raise Meltdown::Error, _("Could not start %{name} at #{speed["x"]} rounds; " \\
      "it's off") % { name: name } unless "a string that nobody prints" == x
    Machine.warning _("The pump of %{name} leaks") % { name: name }
    logger.err <<-TEXT
      The flux of #{name} is low
    TEXT
    notice "Started \\"%s\\" in %0.2f seconds" % [a, b] if x =~ /not "this"/
    message = 'Nothing to be done for it'
    label = "only a label of something"
  end
  desc "What the reactor is for"
  desc _("What the pump is for")
  issue :LOW do
    _("The level of %{x} is low")
  end
end
"""


def test_ruby() -> None:
    assert list(literals.ruby(RUBY)) == [
        Literal(f"Could not start {BLANK} at {BLANK} rounds; it's off", "Reactor.start", "error"),
        Literal("a string that nobody prints", "Reactor.start", "error"),
        Literal(f"The pump of {BLANK} leaks", "Reactor.start", "warning"),
        Literal(f"      The flux of {BLANK} is low\n", "Reactor.start", "error"),
        Literal(f'Started "{BLANK}" in {BLANK} seconds', "Reactor.start", "notice"),
        Literal("Nothing to be done for it", "Reactor.start", ""),
        Literal("What the pump is for", "Reactor.start", "help"),
        Literal(f"The level of {BLANK} is low", "Reactor.start", ""),
    ]


CLOJURE = """
(ns reactor.core "What this is for")
(defn start!
  "Starts the reactor, if it can."
  [name]
  (log/warn (i18n/trs "The pump of {0} ''leaks'' badly" name))
  (when-not name
    (throw (IllegalArgumentException. (str "No name of " name " was given"))))
  (sling/throw+ {:kind :low :msg (tru "The level of {0} is low" name)})
  (jdbc/query "select what nobody prints"))
"""


def test_clojure() -> None:
    assert list(literals.clojure(CLOJURE)) == [
        Literal(f"The pump of {BLANK} ''leaks'' badly", "start!", "warning"),
        Literal(f"No name of {BLANK} was given", "start!", "error"),
        Literal(f"The level of {BLANK} is low", "start!", "error"),
    ]


def test_cpp() -> None:
    source = 'LOG_WARNING("the pump of {1} "\n "leaks", name); throw leak_exception(_("the flux is {1}%", x)); f("no");'
    assert list(literals.cpp(source)) == [
        Literal(f"the pump of {BLANK} leaks", "", "warning"),
        Literal(f"the flux is {BLANK}%", "", "error"),
    ]


def test_a_catalog_of_messages() -> None:
    catalog = '#: ../lib/a.rb:12 ../lib/b.rb:3\nmsgid ""\n"The pump of %{x} "\n"leaks {0}"\nmsgstr ""\n'
    text = Literal(f"The pump of {BLANK} leaks {BLANK}", "", "")
    assert list(literals.translations(catalog)) == [("lib/a.rb", text), ("lib/b.rb", text)]
