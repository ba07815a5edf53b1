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

PuppetInspector.task(%w[file directory base lease command master timeout with raw]) do |given|
  PuppetInspector::Place.work(given, kept: true) do |place|
    program = place.program(given['file'])
    capture = place['capture.sqlite']
    options = given['master'] ? ['--master', given['master']] : []
    command = given['command'] || %w[puppet agent -t]
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (given['timeout'] || 3600)
    # It goes on if the connection is lost: half a run of the agent would be worse.
    ended = place.start(program, 'run', '-o', capture, *options, '--', *command) do
      Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit
    end
    raise PuppetInspector::Failed, "The run was not recorded: #{place.errors}" unless File.size?(capture)

    { 'status' => ended.exitstatus }.merge(place.results(program, capture, given))
  end
end
