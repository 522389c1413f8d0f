// Implements the second half of ConfigBinder: where values come from, how errors are reported, and
// the resolved configuration as YAML.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "src/base/config_binder.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/file_writers.h"
#include "src/base/host_site.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr const char* kPolicyName = "policy.yaml";  // is no configuration (docs/access.md)
constexpr std::string_view kVariablePrefix = "TRIREME_";
constexpr std::size_t kMaxProblemsTold = 10;
constexpr std::size_t kMaxValueTold = 80;

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// Parses a value given outside of a YAML file. `[a, b]` and `{a: 1}` are parsed as YAML; any other
// text is the value itself.
std::vector<ConfigEntry> parse_assignment(const std::string& key, const std::string& text,
                                          const std::string& origin) {
  if (text.starts_with('[') || text.starts_with('{')) {
    return parse_config(key + ": " + text, origin);
  }
  if (text.empty() || text == "~" || text == "null") {
    return {{key, ConfigValue{}, 1}};
  }
  return {{key, ConfigValue::scalar(text), 1}};
}

// A file that can't be a configuration, for example because of its size, is a wrong argument and
// not damaged data.
std::string read_config(const std::filesystem::path& path) {
  try {
    return read_file(path, kMaxConfigBytes);
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("not a configuration: {}", error.what()));
  } catch (const IoError&) {
    std::error_code code;
    (void)std::filesystem::status(path, code);
    if (code == std::errc::too_many_symbolic_link_levels) {
      throw ConfigError(
          fmt::format("not a configuration: {}: the symbolic links form a loop", path.string()));
    }
    throw;
  }
}

std::string shown(const ConfigValue& value) {
  const std::string text = value.to_yaml();
  return text.size() <= kMaxValueTold ? text : text.substr(0, kMaxValueTold) + "...";
}

}  // namespace

std::filesystem::path site_folder() {
  const char* folder = std::getenv("TRIREME_SITE_DIR");
  if (folder == nullptr || *folder == '\0') {
    return kHostSiteFolder;
  }
  std::error_code unusable;
  if (!std::filesystem::is_directory(folder, unusable)) {
    throw ConfigError(
        fmt::format("TRIREME_SITE_DIR is {}, which is not a folder: correct it, or unset it to use "
                    "/etc/trireme",
                    printable(folder)));
  }
  return folder;
}

void ConfigBinder::put(Source source, const std::string& key, ConfigValue value,
                       const std::string& origin) {
  const auto found = given_.find(key);
  if (found == given_.end() || found->second.source <= source) {
    given_[key] = {source, std::move(value), origin};
  }
}

void ConfigBinder::put_yaml(Source source, std::string_view yaml, const std::string& name,
                            const std::string& prefix) {
  for (ConfigEntry& entry : parse_config(yaml, name)) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    put(source, key, std::move(entry.value), fmt::format("{}:{}", name, entry.line));
  }
}

void ConfigBinder::add_site_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".yaml" && entry.path().filename() != kPolicyName) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  constexpr std::string_view kHarm = "change what commands record, encrypt and run";
  if (!files.empty()) {
    refuse_if_all_can_write(folder, kHarm);
  }
  for (const auto& file : files) {
    refuse_if_all_can_write(file, kHarm);
    put_yaml(Source::site, read_config(file), file.string());
  }
}

void ConfigBinder::add_file(const std::filesystem::path& path) {
  std::error_code unusable;  // reading the file reports the error
  if (std::filesystem::is_directory(path, unusable)) {
    throw ConfigError(fmt::format("{} is a folder: give the YAML file in it", path.string()));
  }
  put_yaml(Source::file, read_config(path), path.string());
}

void ConfigBinder::add_environment(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(kVariablePrefix) || equals == std::string_view::npos) {
      continue;
    }
    const std::string name(variable.substr(0, equals));
    const std::string key = lower_case(name.substr(kVariablePrefix.size()));
    if (key.find("__") == std::string::npos) {
      switches_.emplace_back(name, key);
      continue;
    }
    const std::string origin = "environment " + name;
    for (ConfigEntry& entry : parse_assignment(replaced(key, "__", "."),
                                               std::string(variable.substr(equals + 1)), origin)) {
      put(Source::environment, entry.key, std::move(entry.value), origin);
    }
  }
}

void ConfigBinder::allow_word_for(const std::string& section, const std::string& key) {
  const auto found = given_.find(section);
  if (found == given_.end() || found->second.value.kind != ConfigValue::Kind::scalar) {
    return;
  }
  Given given = std::move(found->second);
  given_.erase(found);
  put(given.source, key, std::move(given.value), given.origin);
}

void ConfigBinder::add_arguments(const std::vector<std::string>& arguments,
                                 const std::string& origin) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(fmt::format(
          "command line: '{}' is not of the form key=value, as in train.steps=100", argument));
    }
    for (ConfigEntry& entry : parse_assignment(argument.substr(0, equals),
                                               argument.substr(equals + 1), "command line")) {
      put(Source::command_line, entry.key, std::move(entry.value), origin);
    }
  }
}

void ConfigBinder::include_defaults(const std::string& prefix, std::string_view yaml,
                                    const std::string& origin) {
  put_yaml(Source::included, yaml, origin, prefix);
}

std::optional<std::string> ConfigBinder::given_text(const std::string& key) const {
  const auto found = given_.find(key);
  if (found == given_.end() || found->second.value.kind != ConfigValue::Kind::scalar) {
    return std::nullopt;
  }
  return found->second.value.items[0];
}

std::string ConfigBinder::origin_of(const std::string& key) const {
  const auto found = given_.find(key);
  return found == given_.end() ? "default" : found->second.origin;
}

void ConfigBinder::refuse(const std::string& key, const std::string& what) {
  problems_.push_back(fmt::format("{}: {}: {}", origin_of(key), key, what));
}

std::string ConfigBinder::unknown_key(const std::string& key, const Given& given) const {
  std::vector<std::string> known;
  for (const ResolvedKey& resolved : resolved_) {
    known.push_back(resolved.key);
    if (resolved.key.starts_with(key + ".")) {
      return given.value.kind == ConfigValue::Kind::null ||
                     given.value.kind == ConfigValue::Kind::mapping
                 ? ""
                 : fmt::format(
                       "{}: {} is a section and takes no value ({}): set its keys, such as {}",
                       given.origin, key, shown(given.value), resolved.key);
    }
    if (key.starts_with(resolved.key + ".")) {
      return fmt::format("{}: {} is not a section: it takes {}", given.origin, resolved.key,
                         resolved.allowed);
    }
  }
  const std::string nearest = nearest_word(key, known);
  // A mistyped key, or a file of another program, may hold a passphrase, and messages end up in
  // files that others read.
  const bool may_be_secret = key.starts_with("encryption.") || key.starts_with("audit.") ||
                             (nearest.empty() && given.value.kind != ConfigValue::Kind::mapping);
  return fmt::format("{}: {}: unknown key{}{}", given.origin, key,
                     may_be_secret ? "" : fmt::format(" (its value: {})", shown(given.value)),
                     nearest.empty() ? "; `trireme config show` lists all keys"
                                     : fmt::format("; did you mean {}?", nearest));
}

std::vector<std::string> ConfigBinder::all_problems() const {
  std::vector<std::string> all;
  std::set<std::string> known;
  for (std::size_t i = 0; i < resolved_.size(); ++i) {
    const ResolvedKey& key = resolved_[i];
    known.insert(key.key);
    if (unfit_.contains(i)) {
      all.push_back(fmt::format("{}: {}: {} is not allowed; allowed: {}", key.origin, key.key,
                                shown(key.value), key.allowed));
    }
  }
  for (const auto& [key, given] : given_) {
    const std::string problem = known.contains(key) ? "" : unknown_key(key, given);
    if (!problem.empty()) {
      all.push_back(problem);
    }
  }
  for (const auto& [name, word] : switches_) {
    for (const std::string& key : known) {
      if (replaced(key, ".", "_") == word) {
        std::string right = std::string(kVariablePrefix) + replaced(key, ".", "__");
        std::transform(right.begin(), right.end(), right.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        all.push_back(fmt::format("environment {}: to set {} write {}", name, key, right));
      }
    }
  }
  all.insert(all.end(), problems_.begin(), problems_.end());
  return all;
}

void ConfigBinder::finish() const {
  const std::vector<std::string> all = all_problems();
  if (all.empty()) {
    return;
  }
  if (all.size() == 1) {
    throw ConfigError(all[0]);
  }
  std::string what = fmt::format("{} problems in the configuration:", all.size());
  for (std::size_t i = 0; i < std::min(all.size(), kMaxProblemsTold); ++i) {
    what += "\n  " + all[i];
  }
  if (all.size() > kMaxProblemsTold) {
    what += fmt::format("\n  and {} more", all.size() - kMaxProblemsTold);
  }
  throw ConfigError(what);
}

void ConfigBinder::finish_part(const std::vector<ResolvedKey>& all) const {
  ConfigBinder whole = *this;
  for (const ResolvedKey& key : all) {
    const bool bound = std::any_of(resolved_.begin(), resolved_.end(),
                                   [&](const ResolvedKey& other) { return other.key == key.key; });
    if (!bound) {
      whole.resolved_.push_back(key);
    }
  }
  whole.finish();
}

namespace {

// Writes the keys below `prefix`, each section at the position of its first key. If a section's
// name is also that of a key, as in launch.tls and launch.tls.ca, its keys are written with dots.
void write_section(const std::vector<ResolvedKey>& keys, const std::string& prefix, int depth,
                   std::string& out) {
  std::set<std::string> sections_done;
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  for (const ResolvedKey& key : keys) {
    if (!key.key.starts_with(prefix)) {
      continue;
    }
    const std::string rest = key.key.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    const std::string section = prefix + rest.substr(0, dot);
    const bool is_key = std::any_of(keys.begin(), keys.end(),
                                    [&](const ResolvedKey& other) { return other.key == section; });
    if (dot == std::string::npos || is_key) {
      out +=
          fmt::format("{}{}: {}  # {}\n", indent, rest, key.value.to_yaml(), printable(key.origin));
    } else if (sections_done.insert(rest.substr(0, dot)).second) {
      out += fmt::format("{}{}:\n", indent, rest.substr(0, dot));
      write_section(keys, prefix + rest.substr(0, dot + 1), depth + 1, out);
    }
  }
}

}  // namespace

std::string ConfigBinder::to_yaml() const {
  std::string out;
  write_section(resolved_, "", 0, out);
  return out;
}

}  // namespace trireme
