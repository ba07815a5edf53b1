# Prints the subject and the issuer of every certificate and CRL in PEM below a directory as Ruby writes them, and so as
# agents do, as JSON: ruby certificate_names.rb DIRECTORY
require 'json'
require 'openssl'

found = Dir[File.join(ARGV[0], '**/*.pem')].sort.flat_map do |path|
  File.binread(path).to_enum(:scan, /-----BEGIN (CERTIFICATE|X509 CRL)-----.+?-----END \1-----/m).map do
    block, kind = Regexp.last_match(0), Regexp.last_match(1)
    read = kind == 'CERTIFICATE' ? OpenSSL::X509::Certificate.new(block) : OpenSSL::X509::CRL.new(block)
    names = kind == 'CERTIFICATE' ? [read.subject, read.issuer] : [read.issuer]
    { path: path, block: block, names: names.map(&:to_utf8) }
  rescue OpenSSL::X509::CertificateError, OpenSSL::X509::CRLError
    nil
  end
end
puts JSON.generate(found.compact)
