#!/bin/sh
# The rest is Ruby: the agent's own, or another one that the node has.
for ruby in /opt/puppetlabs/puppet/bin/ruby ruby; do
    command -v "$ruby" >/dev/null 2>&1 && exec "$ruby" -x "$0" "$@"
done
echo '{"_error": {"msg": "This node has no Ruby.", "kind": "puppet_inspector/failed", "details": {}}}'
exit 1
#!ruby
# frozen_string_literal: true

require_relative '../files/node'

PuppetInspector.task(%w[base lease]) do |given|
  PuppetInspector.answer('directory' => PuppetInspector::Place.make(given['base'], given['lease']).path)
end
