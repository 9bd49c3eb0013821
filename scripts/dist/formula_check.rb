# A stand-in for Homebrew: loads a formula and runs its `install` in an unpacked tarball, as far as the formula uses it.
#
# usage: ruby formula_check.rb FORMULA UNPACKED PREFIX VERSION

require "fileutils"
require "pathname"

class Pathname
  def install(*files)
    files = files.flatten
    raise "nothing to install in #{self}" if files.empty?

    files.each { |file| FileUtils.mkdir_p(self) && FileUtils.cp_r(file, self) }
  end
end

class Formula
  PLACES = {
    bin: "bin", opt_bin: "bin", lib: "lib", man1: "share/man/man1", doc: "share/doc/assay",
    bash_completion: "etc/bash_completion.d", zsh_completion: "share/zsh/site-functions",
    fish_completion: "share/fish/vendor_completions.d"
  }.freeze
  STATED = %i[desc homepage url version sha256 license depends_on test].freeze

  class << self
    def stated = (@stated ||= {})
    STATED.each { |name| define_method(name) { |*values, **pairs, &block| stated[name] = [*values, pairs, block].compact } }
  end

  def initialize(prefix) = @prefix = Pathname(prefix)
  PLACES.each { |name, place| define_method(name) { @prefix / place } }

  def inreplace(paths, before, after)
    raise "nothing to replace in" if paths.empty?

    paths.each do |path|
      text = File.read(path)
      raise "#{path} does not have #{before}" unless text.include?(before)

      File.write(path, text.gsub(before, after.to_s))
    end
  end
end

formula, unpacked, prefix, version = ARGV
load formula
missing = Formula::STATED - Assay.stated.keys
abort "#{formula} does not state #{missing.join(', ')}" unless missing.empty?
abort "#{formula} is not of version #{version}" unless Assay.stated[:version].first == version
Dir.chdir(unpacked) { Assay.new(prefix).install }
%w[bin/assay share/man/man1/assay.1.gz etc/bash_completion.d/assay share/doc/assay/examples].each do |path|
  abort "the formula does not install #{path}" unless File.exist?(File.join(prefix, path))
end
unit = File.read(File.join(prefix, "lib/systemd/system/assay-agent.service"))
abort "the unit does not name the program of the formula" unless unit.include?("ExecStart=#{prefix}/bin/assay agent")
puts "assay.rb: installs #{Dir.glob("#{prefix}/**/*").count { |path| File.file?(path) }} files"
