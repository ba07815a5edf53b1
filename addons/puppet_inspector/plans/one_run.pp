# @summary Records one run of each node's agent, and brings report and shared capture back. Nothing stays on the nodes.
#
# @param targets
#   The nodes.
# @param file
#   The one-file build of puppet-inspector, on the host of Bolt.
# @param destination
#   Where the results go, below the project's directory `downloads`: a directory for each node.
# @param command
#   The command of the run.
# @param master
#   Another master than that of the node's `puppet.conf`, `HOST[:PORT]`.
# @param base
#   Where the node has some 250 MB, and allows programs.
# @param with
#   What report and shared capture do not withhold: facts, parameters, logs, files, or all.
# @param raw
#   Also bring the capture itself and what the agent printed: they contain secrets.
# @param timeout
#   Seconds after which the run is ended.
# @return
#   A hash of what the task answered, or its error, by node.
plan puppet_inspector::one_run(
  TargetSpec $targets,
  String[1] $file,
  String[1] $destination = 'puppet-inspector',
  Array[String[1], 1] $command = ['puppet', 'agent', '-t'],
  Optional[String[1]] $master = undef,
  Pattern[/\A\//] $base = '/var/tmp',
  Optional[Pattern[/\A[a-z,]+\z/]] $with = undef,
  Boolean $raw = false,
  Integer[1] $timeout = 3600,
) {
  $pairs = parallelize(get_targets($targets)) |$target| {
    $outcome = catch_errors() || {
      # From here on the node removes the directory by itself, should the connection be lost.
      $directory = run_task('puppet_inspector::place', $target, 'base' => $base).first.value['directory']
      $answer = catch_errors() || {
        upload_file($file, "${directory}/puppet-inspector", $target)
        $run = run_task('puppet_inspector::one_run', $target, {
          'directory' => $directory,
          'file'      => "${directory}/puppet-inspector",
          'command'   => $command,
          'master'    => $master,
          'with'      => $with,
          'raw'       => $raw,
          'timeout'   => $timeout,
        })
        download_file("${directory}/results", $destination, $target)
        $run.first.value
      }
      run_command("rm -rf -- '${directory}'", $target, '_catch_errors' => true)
      $answer
    }
    [$target.name, $outcome]
  }
  return Hash($pairs)
}
