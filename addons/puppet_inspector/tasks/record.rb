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

# Seconds between two looks at what was recorded.
LOOK = 5

PuppetInspector.task(%w[file directory base lease minutes runs options with raw]) do |given|
  raise PuppetInspector::Failed, 'For how long? Name minutes, and runs if it is to end earlier.' unless given['minutes']

  PuppetInspector::Place.work(given, kept: true) do |place|
    program = place.program(given['file'])
    capture = place['capture.sqlite']
    sets = { 'puppet_capture' => capture }.merge(given['options'] || {}) { raise PuppetInspector::Failed, 'The task names the capture.' }
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + given['minutes'] * 60
    looked = 0
    enough = lambda do
      out, _, status = place.run(program, 'runs', '--json', capture)
      status.success? && JSON.parse(out).count { |run| run['state'] == 'over' } >= given['runs']
    end
    ended = place.start(program, 'proxy', *sets.flat_map { |name, value| ['--set', "#{name}=#{value}"] }) do
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      next true if now - looked < LOOK

      looked = now
      # An empty line does not harm the result, and shows whether the connection is lost.
      $stdout.puts
      $stdout.flush
      now < limit && !(given['runs'] && enough.call)
    end
    unless looked.positive? && ended.success?
      raise PuppetInspector::Failed, "The proxy ended: #{place.errors}"
    end

    place.results(program, capture, given)
  end
end
