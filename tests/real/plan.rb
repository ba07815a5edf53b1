# frozen_string_literal: true

# Plays a plan with Puppet's own library. What the plan asks of Bolt (targets, tasks, files, errors) is done here, as
# Bolt does it, over ssh; but one node after the other.
#
#     ruby plan.rb < given.json
#
# Given: `plan`, its `parameters`, the `modulepath`, `downloads` (a directory), `targets` (the words of the ssh command of
# each name), `own` (a directory for Puppet's settings). Printed: what the plan returns; an error is {"_error": ...}.

require 'json'
require 'open3'
require 'puppet_pal'

GIVEN = JSON.parse($stdin.read)
TYPES = <<~PUPPET
  type Target = Object[{ name => 'Target', attributes => { name => String[1] } }]
  type Result = Object[{ name => 'Result', attributes => { value => Hash[String, Data] } }]
  type ResultSet = Object[{ name => 'ResultSet', attributes => { first => Result } }]
  type TargetSpec = Variant[String[1], Target, Array[TargetSpec]]
PUPPET

# What did not succeed on a node: the plan ends with it, or catches it.
class Failed < StandardError
  attr_reader :error

  def initialize(message, details = {})
    super(message)
    @error = Puppet::DataTypes::Error.new(message, 'bolt/run-failure', details)
  end
end

# Run a command on a target; return what it prints.
def remote(target, command, input = '', failing: false)
  out, err, status = Open3.capture3(*GIVEN["targets"].fetch(target.name), command, stdin_data: input, binmode: true)
  raise Failed, "#{command} on #{target.name}: #{err}" unless status.success? || failing

  out
end

def local(*words, **options)
  out, err, status = Open3.capture3(*words, binmode: true, **options)
  raise Failed, err unless status.success?

  out
end

# Run a task: its file and the other files that its metadata name are brought, and taken away again.
def run_task(compiler, name, target, parameters)
  signature = compiler.task_signature(name) || raise("There is no task #{name}.")
  signature.runnable_with?(parameters) { |mismatch| raise mismatch }
  task = signature.task_hash
  program = "#{name.split('::').first}/tasks/#{task['files'].first['name']}"
  files = local('tar', '-C', GIVEN['modulepath'], '-cf', '-', program, *task['metadata']['files'])
  directory = remote(target, 'd=$(mktemp -d) && tar -xf - -C "$d" && echo "$d"', files).strip
  begin
    given = JSON.generate(parameters.merge('_task' => name, '_installdir' => directory))
    value = JSON.parse(remote(target, "#{directory}/#{program}", given, failing: true))
  ensure
    remote(target, "rm -rf #{directory}")
  end
  raise Failed.new("run_task '#{name}' failed on 1 target", 'result' => value) if value['_error']

  value
end

# Offer a function of the Puppet language.
def offer(name, &body)
  loader = Puppet.lookup(:loaders).public_environment_loader
  made = Puppet::Functions.create_loaded_function(name, loader) do
    dispatch :carried_out do
      repeated_param 'Any', :given
      optional_block_param
    end
    define_method(:carried_out, &body)
  end
  loader.set_entry(Puppet::Pops::Loader::TypedName.new(:function, name), made.new(nil, loader))
end

def offer_all(compiler)
  one = lambda do |value|
    compiler.create('ResultSet', 'first' => compiler.create('Result', 'value' => value))
  end
  offer('get_targets') { |names| [names].flatten.map { |name| compiler.create('Target', 'name' => name) } }
  offer('parallelize') { |values, &block| values.map { |value| block.call(value) } }
  offer('catch_errors') do |&block|
    block.call
  rescue Puppet::PreformattedError => e
    e.cause.is_a?(Failed) ? e.cause.error : raise
  end
  offer('run_task') { |name, target, parameters = {}| one.call(run_task(compiler, name, target, parameters)) }
  offer('run_command') do |command, target, options|
    one.call('stdout' => remote(target, command, failing: options['_catch_errors']))
  end
  offer('upload_file') do |source, path, target|
    raise Failed, "There is no #{source}." unless File.file?(source)

    remote(target, "cat > '#{path}'", File.binread(source))
    one.call({})
  end
  offer('download_file') do |path, folder, target|
    place = File.join(GIVEN['downloads'], folder, target.name)
    FileUtils.mkdir_p(place)
    local('tar', '-C', place, '-xf', '-', stdin_data: remote(target, "tar -C #{File.dirname(path)} -cf - #{File.basename(path)}"))
    one.call('path' => File.join(place, File.basename(path)))
  end
end

def play(compiler)
  compiler.evaluate_string(TYPES)
  offer_all(compiler)
  name, parameters = GIVEN.values_at('plan', 'parameters')
  compiler.plan_signature(name).callable_with?(parameters) { |mismatch| raise mismatch }
  # What Bolt's function run_plan does: the plan is evaluated by itself, and what it returns is caught.
  loaders = Puppet.lookup(:loaders)
  plan = loaders.private_environment_loader.load(:plan, name).class.dispatcher.dispatchers.first
  scope = Puppet.lookup(:global_scope)
  returned = catch(:return) { return plan.call_by_name_with_scope(scope, parameters, true) }
  returned.value
end

def printable(value)
  case value
  when Puppet::DataTypes::Error then { '_error' => value._pcore_init_hash }
  when Hash then value.transform_values { |each| printable(each) }
  else value
  end
end

Puppet.initialize_settings(%w[confdir vardir codedir logdir rundir publicdir].flat_map { |name| ["--#{name}", GIVEN['own']] })
answer = Puppet::Pal.in_tmp_environment('plan', modulepath: [GIVEN['modulepath']], facts: {}) do |pal|
  pal.with_script_compiler { |compiler| play(compiler) }
end
puts JSON.generate(printable(answer))
