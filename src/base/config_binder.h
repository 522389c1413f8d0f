// ConfigBinder merges the sources of a configuration and binds their values to plain structs. Each
// room has a function such as
//
//   void bind(ConfigBinder& b, OptimizerConfig& c) {
//     b.real("optimizer.lr", c.lr, "peak learning rate").above(0);
//     b.text("optimizer.name", c.name, "the optimizer").one_of({"adamw"});
//   }
//
// A struct's initial value is the default. Sources, weakest first: defaults, include_defaults (a
// preset), site files, the run's file, environment, command line. All errors are collected, each
// with file, line, key, value and what is allowed, and finish() throws them as one ConfigError.
// Owned by the app; for one thread.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/config_tree.h"

namespace trireme {

class ConfigBinder;

// A number, or one of the words that the key allows ("auto").
struct IntegerOrWord {
  std::int64_t integer = 0;
  std::string word;  // empty if the value is a number
  bool is(std::string_view which) const { return word == which; }
};

// The resolved value of a key: one line of `trireme config show`.
struct ResolvedKey {
  std::string key;
  ConfigValue value;
  std::string origin;   // "run.yaml:12", "environment TRIREME_...", "command line", "default", ...
  std::string doc;      // what the key means
  std::string allowed;  // "integer, at least 1"
  bool required = false;
};

// Restricts the allowed values of a key. Returned by the binding calls; used within the same
// statement.
class ConfigRule {
 public:
  ConfigRule& required();
  ConfigRule& at_least(double bound);
  ConfigRule& at_most(double bound);
  ConfigRule& above(double bound);
  ConfigRule& below(double bound);
  ConfigRule& one_of(const std::vector<std::string>& words);

 private:
  friend class ConfigBinder;
  ConfigRule(ConfigBinder& binder, std::size_t index, std::vector<double> numbers)
      : binder_(binder), index_(index), numbers_(std::move(numbers)) {}
  ConfigRule& bound(std::string_view words, double bound, bool (*holds)(double, double));

  ConfigBinder& binder_;
  std::size_t index_;            // index of the key in `resolved_`
  std::vector<double> numbers_;  // the given values, if they are numbers
  bool narrowed_ = false;
};

class ConfigBinder {
 public:
  // Add the sources. The order of calls does not matter between kinds; within a kind, later calls
  // win.
  void add_site_files(const std::filesystem::path& folder);  // *.yaml in name order; may be absent
  void add_file(const std::filesystem::path& path);
  // TRIREME_TRAIN__STEPS=5 sets train.steps. Variables without "__" are switches and not part of
  // the configuration.
  void add_environment(const char* const* environment);
  // Arguments have the form "train.steps=5" or "optimizer.betas=[0.9, 0.95]". origin: shown as that
  // of their values.
  void add_arguments(const std::vector<std::string>& arguments,
                     const std::string& origin = "command line");
  // Makes `parallel: auto` mean `parallel: {layout: auto}`: a word in the place of a section is the
  // value of `key`. Sources that are added later win over it. Called before anything is bound.
  void allow_word_for(const std::string& section, const std::string& key);
  // Adds the YAML's keys, below `prefix` ("model", or "" for the root), as defaults that all users'
  // sources override.
  void include_defaults(const std::string& prefix, std::string_view yaml,
                        const std::string& origin);

  // Returns what the sources say about a key before it is bound, for example the name of a preset.
  std::optional<std::string> given_text(const std::string& key) const;

  ConfigRule integer(const std::string& key, std::int64_t& value, std::string_view doc);
  ConfigRule integer(const std::string& key, int& value, std::string_view doc);
  ConfigRule integer(const std::string& key, std::uint64_t& value, std::string_view doc);
  ConfigRule real(const std::string& key, double& value, std::string_view doc);
  ConfigRule real(const std::string& key, float& value, std::string_view doc);
  ConfigRule boolean(const std::string& key, bool& value, std::string_view doc);
  ConfigRule text(const std::string& key, std::string& value, std::string_view doc);
  ConfigRule path(const std::string& key, std::filesystem::path& value, std::string_view doc);
  // Binds a size, such as 64K, 25MiB or 4096.
  ConfigRule bytes(const std::string& key, std::int64_t& value, std::string_view doc);
  ConfigRule integer_or_word(const std::string& key, IntegerOrWord& value,
                             const std::vector<std::string>& words, std::string_view doc);
  ConfigRule real_pair(const std::string& key, std::array<double, 2>& value, std::string_view doc);
  // A single text counts as a list of one.
  ConfigRule texts(const std::string& key, std::vector<std::string>& value, std::string_view doc);

  // Binds a list of mappings, to the entries of each. A text, or a list of texts, stands for
  // mappings whose only key is `text_key`; an empty text for none.
  ConfigRule mappings(const std::string& key, std::vector<std::vector<ConfigEntry>>& value,
                      const std::string& text_key, std::string_view doc);

  // Adds a problem that a room found in combinations of keys; the message includes the origin of
  // `key`.
  void refuse(const std::string& key, const std::string& what);
  // Called after all keys are bound. Throws one ConfigError with all problems, including unknown
  // keys.
  void finish() const;
  // Does the same where only a part of the keys is bound: `all` are known, too.
  void finish_part(const std::vector<ResolvedKey>& all) const;

  // The keys are in the order of binding.
  const std::vector<ResolvedKey>& resolved() const { return resolved_; }
  std::string origin_of(const std::string& key) const;
  // Returns the resolved configuration as YAML that can be loaded again, with the origins as
  // comments.
  std::string to_yaml() const;

 private:
  friend class ConfigRule;
  enum class Source { included, site, file, environment, command_line };
  struct Given {
    Source source;
    ConfigValue value;
    std::string origin;
  };

  void put(Source source, const std::string& key, ConfigValue value, const std::string& origin);
  void put_yaml(Source source, std::string_view yaml, const std::string& name,
                const std::string& prefix = "");
  // Registers the key and its default. Returns what a source says about it, or null.
  const Given* begin(const std::string& key, ConfigValue fallback, std::string_view doc,
                     std::string allowed);
  // Ends the binding that begin() started: takes the source's value, or records that it is
  // malformed.
  ConfigRule end(const Given* given, bool well_formed, std::vector<double> numbers = {});
  ConfigRule bind_integer(const std::string& key, std::int64_t& value, std::int64_t low,
                          std::int64_t high, std::string_view doc);
  std::string unknown_key(const std::string& key, const Given& given) const;
  std::vector<std::string> all_problems() const;

  std::map<std::string, Given> given_;
  std::vector<ResolvedKey> resolved_;
  std::set<std::size_t> unfit_;  // resolved keys whose given value is not allowed
  std::vector<std::string> problems_;
  // Holds the names TRIREME_X_Y that are set, each with the key that may have been meant.
  std::vector<std::pair<std::string, std::string>> switches_;
};

// Returns $TRIREME_SITE_DIR, or /etc/trireme.
std::filesystem::path site_folder();

}  // namespace trireme
