#include "src/study/records/known_records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/json_lines.h"

namespace trireme {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_time(std::string_view text) {
  return is_shaped(text, "0000-00-00") || is_shaped(text, "0000-00-00T00:00:00") ||
         is_shaped(text, "0000-00-00T00:00:00Z") || is_shaped(text, "0000-00-00 00:00:00");
}

// Returns whether a text is like 2.6.3. Addresses have four numbers.
bool is_version(std::string_view text) {
  return text.size() <= 10 && has_only(text, "0123456789.") && !text.starts_with('.') &&
         !text.ends_with('.') && std::count(text.begin(), text.end(), '.') == 2;
}

// Returns whether a text consists of words of the program, as "gemm time_us".
bool has_known_words(std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!is_known_word(word) && !is_known_field(word)) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

bool is_float_bits(std::string_view text) {
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
  }
  return text.size() == 8 && has_only(text, "0123456789abcdef");
}

// Returns whether a scalar of YAML is a number, also one with a unit of bytes.
bool is_number(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  constexpr std::array<std::string_view, 9> kUnits = {"",    "K",   "M",   "G",  "T",
                                                      "KiB", "MiB", "GiB", "TiB"};
  const std::string_view rest = text.substr(static_cast<std::size_t>(result.ptr - text.data()));
  return result.ec == std::errc() && text.find('(') == std::string_view::npos &&  // no nan(text)
         std::find(kUnits.begin(), kUnits.end(), rest) != kUnits.end();
}

// Returns the parts of a key such as "train.steps".
std::vector<std::string> parts_of(std::string_view key) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= key.size();) {
    const std::size_t end = std::min(key.find('.', at), key.size());
    parts.emplace_back(key.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string yaml_text(const std::string& text) { return ConfigValue::scalar(text).to_yaml(); }

constexpr std::array<std::string_view, 14> kKeptSuffixes = {
    ".yaml", ".yml", ".json", ".jsonl",  ".log", ".out",  ".err",
    ".txt",  ".csv", ".svg",  ".sbatch", ".job", ".html", ".safetensors"};

}  // namespace

KnownRecords::Place KnownRecords::Place::below(std::string_view field) const {
  const bool known = is_known_field(field);
  Naming own = named_by(field);
  if (own == Naming::nothing && (!known || field == "name")) {
    own = naming;
  }
  return {known && holds_figures(field), own, field.ends_with("_bits"), field == "name"};
}

std::string KnownRecords::pseudonym(const std::string& text, const char* kind) {
  const auto [found, is_new] = pseudonyms_.try_emplace(text);
  if (is_new) {
    found->second = fmt::format("{}-{}", kind, ++counts_[kind]);
  }
  return found->second;
}

std::string KnownRecords::own_pseudonym(const std::string& text, const Place& place) {
  ++removed_;
  return pseudonym(text, place.naming == Naming::hosts ? "host" : "text");
}

std::string KnownRecords::kept_text(const std::string& text, const Place& place) {
  const bool is_own = place.naming == Naming::nothing && place.keeps_figures;
  if (text.empty() || is_time(text) || (place.is_bits && is_float_bits(text)) ||
      (is_own && (is_known_word(text) || is_version(text))) ||
      (is_own && place.is_name && has_known_words(text))) {
    return text;
  }
  return own_pseudonym(text, place);
}

std::pair<std::string, KnownRecords::Place> KnownRecords::kept_name(const std::string& name,
                                                                    const Place& place) {
  const std::vector<std::string> parts = parts_of(name);
  if (std::all_of(parts.begin(), parts.end(), is_known_field)) {
    return kept_key(name, place);
  }
  return {own_pseudonym(name, place), place.below(name)};
}

// The reader has bounded the depth.
Json KnownRecords::kept_value(const Json& value, const Place& place) {
  if (value.is_object()) {
    Json kept = Json::object();
    for (const auto& [field, each] : value.items()) {
      const auto [name, own] = kept_name(field, place);
      kept[name] = kept_value(each, own);
    }
    return kept;
  }
  if (value.is_array()) {
    Json kept = Json::array();
    for (const Json& each : value) {
      kept.push_back(kept_value(each, place));
    }
    return kept;
  }
  if (value.is_string()) {
    return kept_text(value.get<std::string>(), place);
  }
  if (value.is_number() && !place.keeps_figures) {
    ++removed_;
    return nullptr;
  }
  return value;
}

std::string KnownRecords::kept_lines(std::string_view lines) {
  std::string kept;
  const DamagedLines damaged = use_lines(lines, [&](std::string_view line) {
    const Json value = parse_json_line(line);
    if (!value.is_object()) {
      return false;
    }
    kept += kept_value(value, {}).dump() + "\n";
    return true;
  });
  removed_ += damaged.count + (damaged.last_is_unfinished ? 1 : 0);
  return kept;
}

std::string KnownRecords::kept_scalar(const std::string& text, const Place& place) {
  if (is_number(text)) {
    removed_ += place.keeps_figures ? 0 : 1;
    return place.keeps_figures ? text : "~";
  }
  return text == "true" || text == "false" ? text : yaml_text(kept_text(text, place));
}

// What stands behind an unknown part may be a part of the same name, as in n1.site.org.
std::pair<std::string, KnownRecords::Place> KnownRecords::kept_key(std::string_view key,
                                                                   const Place& place) {
  std::string kept;
  Place own = place;
  bool is_unknown = false;
  for (const std::string& part : parts_of(key)) {
    is_unknown = is_unknown || !is_known_field(part);
    kept += (kept.empty() ? "" : ".") + (is_unknown ? own_pseudonym(part, own) : part);
    own = own.below(part);
    own.keeps_figures = own.keeps_figures && !is_unknown;
  }
  return {kept, own};
}

std::string KnownRecords::kept_config_value(const ConfigValue& value, const Place& place) {
  if (value.kind == ConfigValue::Kind::scalar) {
    return kept_scalar(value.items.at(0), place);
  }
  if (value.kind == ConfigValue::Kind::null || value.kind == ConfigValue::Kind::mapping) {
    return value.to_yaml();
  }
  std::string list;
  for (const std::string& item : value.items) {
    list += list.empty() ? "" : ", ";
    if (value.kind == ConfigValue::Kind::list) {
      list += kept_scalar(item, place);
      continue;
    }
    std::string mapping;
    for (const ConfigEntry& entry : parse_config(item, "")) {
      const auto [key, own] = kept_key(entry.key, place);
      mapping += fmt::format("{}{}: {}", mapping.empty() ? "" : ", ", yaml_text(key),
                             kept_config_value(entry.value, own));
    }
    list += "{" + mapping + "}";
  }
  return "[" + list + "]";
}

std::string KnownRecords::kept_config(std::string_view yaml) {
  std::string kept;
  std::string open;  // section
  for (const ConfigEntry& entry : parse_config(yaml, "")) {
    const auto [key, place] = kept_key(entry.key, {});
    const std::size_t dot = key.find('.');
    const std::string section = key.substr(0, dot == key.npos ? 0 : dot);
    if (section != open && !section.empty()) {
      kept += yaml_text(section) + ":\n";
    }
    open = section;
    kept += fmt::format("{}{}: {}\n", section.empty() ? "" : "  ",
                        yaml_text(section.empty() ? key : key.substr(dot + 1)),
                        kept_config_value(entry.value, place));
  }
  return kept;
}

KnownRecords::Kept KnownRecords::keep(std::string_view suffix, std::string_view text) {
  removed_ = 0;
  std::string kept;
  if (suffix == ".json") {
    kept = kept_value(parse_json(text), {}).dump(2) + "\n";
  } else if (suffix == ".jsonl") {
    kept = kept_lines(text);
  } else if (suffix == ".yaml" || suffix == ".yml") {
    try {
      kept = kept_config(text);
    } catch (const ConfigError&) {
      throw DataError("no configuration that can be read");
    }
  } else {
    throw DataError("its text is free");
  }
  return {std::move(kept), removed_};
}

std::string KnownRecords::keep_path(const std::string& path) {
  fs::path kept;
  for (const fs::path& part : fs::path(path)) {
    if (part.empty()) {  // behind the slash at the end of a folder's name
      kept /= part;
      continue;
    }
    const std::string suffix = part.extension();
    const bool keeps_suffix =
        std::find(kKeptSuffixes.begin(), kKeptSuffixes.end(), suffix) != kKeptSuffixes.end();
    const std::string stem = keeps_suffix ? part.stem() : part;
    kept /= (is_known_file(stem) ? stem : pseudonym(part, "file")) + (keeps_suffix ? suffix : "");
  }
  return kept;
}

}  // namespace trireme
