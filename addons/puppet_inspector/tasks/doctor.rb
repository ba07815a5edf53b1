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

PuppetInspector.task(%w[file base ssldir live captures]) do |given|
  PuppetInspector::Place.work(given) do |place|
    options = %w[ssldir live].flat_map { |name| given[name] ? ["--#{name}", given[name]] : [] }
    command = [place.program(given['file']), 'doctor', '--json', *options, *(given['captures'] || [])]
    # 1: something is wrong.
    { 'diagnosis' => JSON.parse(place.output(*command, expected: [0, 1])) }
  end
end
