# Reads catalogs, one JSON text a line, and answers for each what an agent does with it before it applies anything:
# {"accepted": true}, or {"stage", "error", "message"} of the refusal. Stages: "read" (the answer becomes a catalog),
# "convert" (its resources become those of the agent), "order" (what comes before what).
# The first argument is a directory that it may write to.

require 'json'
require 'puppet'

base = ARGV.fetch(0)
places = %w[confdir vardir codedir logdir rundir publicdir].flat_map { |name| ["--#{name}", "#{base}/#{name}"] }
Puppet.initialize_settings(places)
Puppet[:graph] = false
Puppet::Util::Log.level = :crit

def refused(stage)
  yield
rescue StandardError, SystemStackError => error
  throw(:answer, {stage: stage, error: error.class.name, message: error.message})
end

def answer(text)
  reader = Puppet::Network::FormatHandler.format(:rich_data_json)
  catalog = refused('read') { reader.intern(Puppet::Resource::Catalog, text) }
  converted = refused('convert') do
    Puppet.override(rich_data: true) { Puppet::Resource::Catalog.from_data_hash(catalog.to_data_hash) }
    catalog.to_ral.tap(&:finalize)
  end
  refused('order') do
    graph = converted.relationship_graph
    cycles = graph.find_cycles_in_graph
    unless cycles.empty?
      paths = cycles.map { |cycle| graph.paths_in_cycle(cycle).map { |path| path.join(' => ') }.join('; ') }
      raise Puppet::Error, "Found #{cycles.length} dependency cycle#{'s' if cycles.length > 1}: (#{paths.join(') (')})"
    end
  end
  {accepted: true}
end

environment = Puppet::Node::Environment.remote(:production)
loaders = Puppet::Pops::Loaders.new(environment, true)
Puppet.push_context(current_environment: environment, loaders: loaders)
$stdout.sync = true
$stdin.each_line do |line|
  found = catch(:answer) { answer(line) }
  puts JSON.generate(found.transform_values { |value| value.is_a?(String) ? value.scrub : value })
end
