// ConfigBinder: joins the sources of a configuration and binds them to plain structs. Each room has
//
//   void bind(ConfigBinder& b, OptimizerConfig& c) {
//     b.real("optimizer.lr", c.lr, "peak learning rate").above(0);
//     b.text("optimizer.name", c.name, "the optimizer").one_of({"adamw"});
//   }
//
// A struct's initial value is the default. Sources, weakest first: defaults, include_defaults (a
// preset), site files, the run's file, environment, command line. Everything that is wrong is
// gathered, with file, line, key, value and what is allowed; finish() throws it as one ConfigError.
// Owned by the app; one thread.
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

// A number, or one of a key's words ("auto").
struct IntegerOrWord {
  std::int64_t integer = 0;
  std::string word;  // empty: the number counts
  bool is(std::string_view which) const { return word == which; }
};

// What a key resolved to: a line of `trireme config show`.
struct ResolvedKey {
  std::string key;
  ConfigValue value;
  std::string origin;   // "run.yaml:12", "environment TRIREME_...", "command line", "default", ...
  std::string doc;      // what it means
  std::string allowed;  // "integer, at least 1"
  bool required = false;
};

// Narrows what a key may be; returned by the binding calls, lives for that statement.
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
  std::size_t index_;            // of the resolved key
  std::vector<double> numbers_;  // what a source gave, where that is numbers
  bool narrowed_ = false;
};

class ConfigBinder {
 public:
  // Sources. The order of calls does not matter between kinds; within a kind later ones win.
  void add_site_files(const std::filesystem::path& folder);  // *.yaml in name order; may be absent
  void add_file(const std::filesystem::path& path);
  // TRIREME_TRAIN__STEPS=5 sets train.steps. Variables without "__" are switches, not
  // configuration.
  void add_environment(const char* const* environment);
  // "train.steps=5", "optimizer.betas=[0.9, 0.95]".
  void add_arguments(const std::vector<std::string>& arguments);
  // Lays the YAML's keys, below `prefix` ("model", or "" for the root), under all that users say.
  void include_defaults(const std::string& prefix, std::string_view yaml,
                        const std::string& origin);

  // What sources say about a key before it is bound: a preset's name, say.
  std::optional<std::string> given_text(const std::string& key) const;

  ConfigRule integer(const std::string& key, std::int64_t& value, std::string_view doc);
  ConfigRule integer(const std::string& key, int& value, std::string_view doc);
  ConfigRule integer(const std::string& key, std::uint64_t& value, std::string_view doc);
  ConfigRule real(const std::string& key, double& value, std::string_view doc);
  ConfigRule real(const std::string& key, float& value, std::string_view doc);
  ConfigRule boolean(const std::string& key, bool& value, std::string_view doc);
  ConfigRule text(const std::string& key, std::string& value, std::string_view doc);
  ConfigRule path(const std::string& key, std::filesystem::path& value, std::string_view doc);
  // A size: 64K, 25MiB, 4096.
  ConfigRule bytes(const std::string& key, std::int64_t& value, std::string_view doc);
  // `~` for none.
  ConfigRule optional_integer(const std::string& key, std::optional<std::int64_t>& value,
                              std::string_view doc);
  ConfigRule integer_or_word(const std::string& key, IntegerOrWord& value,
                             const std::vector<std::string>& words, std::string_view doc);
  ConfigRule real_pair(const std::string& key, std::array<double, 2>& value, std::string_view doc);
  ConfigRule reals(const std::string& key, std::vector<double>& value, std::string_view doc);
  // A single text stands for a list of one.
  ConfigRule texts(const std::string& key, std::vector<std::string>& value, std::string_view doc);

  // Adds a problem that a room found between keys; told with the origin of `key`.
  void refuse(const std::string& key, const std::string& what);
  // After all was bound: throws ConfigError with everything that is wrong, unknown keys included.
  void finish() const;

  // In the order of binding.
  const std::vector<ResolvedKey>& resolved() const { return resolved_; }
  std::string origin_of(const std::string& key) const;
  // The resolved configuration as YAML with its origins as comments; can be loaded again.
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
  // Notes the key and its default; returns what a source says about it, or null.
  const Given* begin(const std::string& key, ConfigValue fallback, std::string_view doc,
                     std::string allowed);
  // Ends the binding that begin() began: takes the source's value, or notes that it is no good.
  ConfigRule end(const Given* given, bool well_formed, std::vector<double> numbers = {});
  ConfigRule bind_integer(const std::string& key, std::int64_t& value, std::int64_t low,
                          std::int64_t high, std::string_view doc);
  std::string unknown_key(const std::string& key, const Given& given) const;
  std::vector<std::string> all_problems() const;

  std::map<std::string, Given> given_;
  std::vector<ResolvedKey> resolved_;
  std::set<std::size_t> unfit_;  // resolved keys whose given value is not allowed
  std::vector<std::string> problems_;
  std::vector<std::pair<std::string, std::string>>
      switches_;  // TRIREME_X_Y, and the key it may mean
};

// $TRIREME_SITE_DIR, or /etc/trireme.
std::filesystem::path site_folder();

}  // namespace trireme
