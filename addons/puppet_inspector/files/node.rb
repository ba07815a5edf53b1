# frozen_string_literal: true

# What the tasks share: parameters in, a result out, and a directory on the node that goes away by itself.

require 'fileutils'
require 'json'
require 'open3'
require 'tmpdir'

module PuppetInspector
  # What a task could not do, in one sentence.
  class Failed < StandardError; end

  LOCK = 'lock'
  NAME = 'puppet-inspector-'

  # Read the parameters and yield them. What the block cannot do is an error as Bolt knows it, with status 1.
  def self.task(known)
    Signal.trap('HUP', 'IGNORE') # a lost terminal does not end a run of the agent
    Signal.trap('TERM') { raise Failed, 'The task was ended by a signal.' }
    # A shell that ssh starts often lacks the directory of the vendor's packages.
    ENV['PATH'] = "#{ENV['PATH']}:/opt/puppetlabs/bin:/usr/local/bin"
    yield(parameters(known))
  rescue Failed, SystemCallError => e
    begin
      answer('_error' => { 'msg' => e.message, 'kind' => 'puppet_inspector/failed', 'details' => {} })
    rescue SystemCallError
      nil # nobody listens any more
    end
    exit 1
  end

  # Print the result. Raises Errno::EPIPE if the connection is lost.
  def self.answer(result)
    $stdout.puts(JSON.generate(result))
    $stdout.flush
  end

  def self.parameters(known)
    given = JSON.parse($stdin.read)
    raise Failed, 'The parameters are no JSON object.' unless given.is_a?(Hash)

    given = given.reject { |name, value| name.start_with?('_') || value.nil? }
    unknown = given.keys - known
    raise Failed, "There is no parameter #{unknown.first}." unless unknown.empty?

    given
  rescue JSON::ParserError
    raise Failed, 'The parameters are no JSON.'
  end

  # A directory on the node, readable for nobody else. A process of its own removes it once no task has worked in it
  # for some time, whatever became of the connection and of the tasks.
  class Place
    attr_reader :path

    # Make one below `base`; it is removed after `lease` seconds without work.
    def self.make(base, lease)
      path = Dir.mktmpdir(NAME, base || '/var/tmp')
      File.write(File.join(path, LOCK), '')
      watch(path, lease || 600)
      new(path)
    rescue SystemCallError => e
      FileUtils.rm_rf(path) if path
      raise Failed, "Cannot work in #{base || '/var/tmp'}: #{e.message}"
    end

    # Work in a directory, a new one unless one is given, and print what the block returns. Then it is removed;
    # `kept`: only if something went wrong, else it stays for whoever fetches the results.
    def self.work(parameters, kept: false)
      place = parameters['directory'] ? new(parameters['directory']) : make(parameters['base'], parameters['lease'])
      done = false
      PuppetInspector.answer(place.locked { yield place })
      done = true
    ensure
      place.remove if place && !(done && kept)
    end

    def self.watch(path, lease)
      watcher = fork do
        Process.setsid
        Signal.trap('HUP', 'IGNORE')
        Signal.trap('TERM', 'DEFAULT')
        [$stdin, $stdout, $stderr].each { |stream| stream.reopen(File::NULL, 'r+') }
        Dir.chdir('/')
        idle = 0
        while idle < lease
          sleep 1
          # Open anew each time: without the directory there is nothing to watch.
          busy = File.open(File.join(path, LOCK)) { |file| !file.flock(File::LOCK_EX | File::LOCK_NB) }
          idle = busy ? 0 : idle + 1
        end
        FileUtils.rm_rf(path)
      rescue SystemCallError
        FileUtils.rm_rf(path)
      ensure
        exit!(0)
      end
      Process.detach(watcher)
    end
    private_class_method :watch

    # Only what a task made may be removed by one.
    def initialize(path)
      unless File.basename(path).start_with?(NAME) && File.file?(File.join(path, LOCK))
        raise Failed, "#{path} is no directory that the task puppet_inspector::place made, or it is gone."
      end

      @path = path
    end

    def [](name)
      File.join(@path, name)
    end

    def remove
      FileUtils.rm_rf(@path)
    end

    # Hold the lock; what the block starts holds it, too, until it ends.
    def locked
      File.open(self[LOCK]) do |lock|
        lock.close_on_exec = false
        lock.flock(File::LOCK_EX)
        yield
      end
    end

    # The command of the program: of a one-file build, which is unpacked here, or of the one that is installed.
    def program(file)
      return unpacked(file) if file

      installed = ENV['PATH'].split(':').map { |each| File.join(each, 'puppet-inspector') }.find { |each| File.executable?(each) }
      raise Failed, 'puppet-inspector is not installed here: name a one-file build (file).' unless installed

      installed
    end

    # Run the program to its end; its output is returned, with its status and its errors.
    def run(*words)
      Open3.capture3(*words, stdin_data: '', chdir: '/', close_others: false)
    end

    # As `run`; a status that is not expected is an error.
    def output(*words, expected: [0])
      out, err, status = run(*words)
      return out if expected.include?(status.exitstatus)

      raise Failed, "puppet-inspector #{words[1]}: #{Place.last(err.empty? ? out : err)}"
    end

    # The end of a text.
    def self.last(text)
      (text[-2000..-1] || text).strip
    end

    # Start the program, with its output in files; yield now and then until it has ended. If the block returns false, or
    # fails, the program is ended in order.
    def start(*words)
      files = { in: File::NULL, out: self['output.txt'], err: self['errors.txt'] }
      pid = spawn(*words, **files, chdir: '/', close_others: false, pgroup: true)
      going = true
      until (ended = Process.waitpid2(pid, Process::WNOHANG))
        sleep 0.2
        next if !going || yield

        going = false
        Process.kill('TERM', pid)
      end
      ended.last
    ensure
      stop(pid) if pid && !ended
    end

    def errors
      Place.last(File.read(self['errors.txt']))
    end

    # Write report and shared capture (`raw`: also the capture itself, and the agent's output), take everything else
    # away, and return what the task answers.
    def results(program, capture, parameters)
      Dir.mkdir(self['results'])
      opened = parameters['with'] ? ['--with', parameters['with']] : []
      output(program, 'report', *opened, '-o', self['results/report.html'], capture)
      output(program, 'share', *opened, '-o', self['results/shared.sqlite'], capture)
      runs = JSON.parse(output(program, 'runs', '--json', capture))
      FileUtils.mv([capture, self['output.txt']], self['results']) if parameters['raw']
      Dir.children(@path).each { |name| FileUtils.rm_rf(self[name]) unless [LOCK, 'results'].include?(name) }
      File.chmod(0o600, *Dir[self['results/*']])
      { 'directory' => @path, 'files' => Dir.children(self['results']).sort, 'runs' => runs }
    end

    private

    # The program that the one-file build has behind its script. Started as it is, root's would be unpacked in
    # /var/cache/puppet-inspector, which may be used by others and would have to be cleaned.
    def unpacked(file)
      head = File.open(file, 'rb') { |build| build.read(65_536) }.to_s
      line = head[/^ *tail -n \+(\d+) -- "\$0" \| gzip/, 1]
      raise Failed, "#{file} is no one-file build of puppet-inspector." unless line

      Dir.mkdir(self['program'])
      tail = ['tail', '-n', "+#{line}", '--', file]
      err, statuses = pipeline(tail, ['gzip', '-dc'], ['tar', '-xf', '-', '-C', self['program']])
      raise Failed, "Cannot unpack in #{@path}: #{err.strip}" unless statuses.all?(&:success?)

      program = File.join(self['program'], 'puppet-inspector')
      _, err, status = run(program, '--version')
      raise Failed, "puppet-inspector does not start here: #{err.strip}" unless status.success?

      program
    rescue Errno::ENOENT
      raise Failed, "There is no file #{file}."
    rescue Errno::EACCES, Errno::ENOEXEC => e
      raise Failed, "puppet-inspector does not start here: #{e.message}"
    end

    def stop(pid)
      Process.kill('TERM', pid)
      300.times do
        return if Process.waitpid(pid, Process::WNOHANG)

        sleep 0.2
      end
      Process.kill('KILL', pid)
      Process.waitpid(pid)
    end

    # Run commands one after the other; return what they print as errors, and their statuses.
    def pipeline(*commands)
      reader, writer = IO.pipe
      threads = Open3.pipeline_start(*commands, err: writer)
      writer.close
      err = reader.read
      [err, threads.map(&:value)]
    end
  end
end
