# Prints what octocatalog-diff finds different between any two catalogs of its own fixtures, as JSON:
#   ruby octocatalog_diff.rb DIRECTORY
# DIRECTORY is a checkout of it. It needs hashdiff and diffy (Debian: ruby-hashdiff, ruby-diffy; unpacked ones are named
# in RUBYLIB). What only the compilation of catalogs needs is left out.
require 'json'
require 'logger'
require 'stringio'
require 'tmpdir'

Dir.mktmpdir do |folder|
  %w[httparty parallel rugged].each { |name| File.write(File.join(folder, "#{name}.rb"), '') }
  $LOAD_PATH.unshift(File.join(ARGV[0], 'lib'), folder)
  require 'octocatalog-diff/errors'
  require 'octocatalog-diff/catalog'
  require 'octocatalog-diff/catalog-diff/differ'
end

paths = Dir[File.join(ARGV[0], 'spec/octocatalog-diff/fixtures/catalogs/*.json')].sort
catalogs = paths.map { |path| [File.basename(path), OctocatalogDiff::Catalog.create(json: File.read(path))] }
pairs = catalogs.combination(2).map do |(before, old), (after, new)|
  differ = OctocatalogDiff::CatalogDiff::Differ.new({ logger: Logger.new(StringIO.new) }, old, new)
  differ.ignore(attr: 'tags')
  { before: before, after: after, found: differ.diff.map { |each| each[0..3] } }
rescue RuntimeError => e
  { before: before, after: after, error: e.message[0, 60] }
end
puts JSON.generate(pairs)
