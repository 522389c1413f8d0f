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

using Json = nlohmann::ordered_json;
using std::string_view_literals::operator""sv;
namespace fs = std::filesystem;

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_commit(std::string_view text) {
  constexpr std::string_view kDirty = "-dirty";
  if (text.ends_with(kDirty)) {
    text.remove_suffix(kDirty.size());
  }
  return text.size() == 12 && has_only(text, "0123456789abcdef");
}

// Returns whether a text is a version of three numbers, such as 2.6.3. An address has four.
bool is_version(std::string_view text) {
  if (text.starts_with('v')) {
    text.remove_prefix(1);
  }
  return text.size() <= 10 && has_only(text, "0123456789.") && !text.starts_with('.') &&
         !text.ends_with('.') && std::count(text.begin(), text.end(), '.') == 2;
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

// Returns whether a word of a text such as "gemm m=128 time_us" is the program's.
bool is_own_word(std::string_view word) {
  const std::size_t equal = word.find('=');
  if (equal == word.npos) {
    return is_known_word(word) || is_known_field(word) || is_version(word);
  }
  const FieldKind kind = kind_of_field(word.substr(0, equal));
  const std::string_view value = word.substr(equal + 1);
  const bool is_figure = kind == FieldKind::figures || kind == FieldKind::numbers;
  return (is_figure && is_number(value)) ||
         ((is_figure || kind == FieldKind::choice) && is_known_word(value));
}

bool has_known_words(std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (!is_own_word(text.substr(at, end - at))) {
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

KnownRecords::Place KnownRecords::Place::below(std::string_view name) const {
  FieldKind own = kind_of_field(name, field);
  const bool is_named_above =
      kind == FieldKind::site_text || kind == FieldKind::host || kind == FieldKind::hosts_or_counts;
  if (is_named_above && (own == FieldKind::unknown || name == "name")) {
    // As in {"host": {"name": "n1"}}. What no format knows is no count.
    own = kind == FieldKind::hosts_or_counts ? FieldKind::host : kind;
  }
  if (field == "environment" && own != FieldKind::unknown) {
    own = FieldKind::site_text;
  }
  return {own, std::string(name)};
}

bool KnownRecords::Place::keeps_numbers() const {
  constexpr std::array kKinds = {FieldKind::figures, FieldKind::numbers, FieldKind::hosts_or_counts,
                                 FieldKind::readings, FieldKind::map};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

bool KnownRecords::Place::keeps_words() const {
  return kind == FieldKind::figures || kind == FieldKind::numbers || kind == FieldKind::choice;
}

std::string KnownRecords::pseudonym(const std::string& text, const char* kind) {
  const auto [found, is_new] = pseudonyms_.try_emplace(text);
  if (is_new) {
    found->second =
        fmt::format("{}-{}{}{}", kind, mark_, mark_.empty() ? "" : "-", ++counts_[kind]);
  }
  return found->second;
}

std::string KnownRecords::own_pseudonym(const std::string& text, const Place& place) {
  ++removed_;
  const bool is_host = place.kind == FieldKind::host || place.kind == FieldKind::hosts_or_counts;
  return pseudonym(text, is_host ? "host" : "text");
}

std::string KnownRecords::kept_text(const std::string& text, const Place& place) {
  constexpr std::array kOfWords = {"name"sv,   "compiler"sv, "mpi"sv,    "cuda"sv,
                                   "nccl"sv,   "unit"sv,     "fmt"sv,    "hdf5"sv,
                                   "onednn"sv, "version"sv,  "details"sv};
  const bool may_be_words =
      std::find(kOfWords.begin(), kOfWords.end(), place.field) != kOfWords.end();
  const bool is_own =
      place.keeps_words() && (is_known_word(text) || (may_be_words && has_known_words(text)));
  const bool is_figure = place.kind == FieldKind::numbers && is_number(text);
  const bool is_digest = (place.field.ends_with("_bits") && is_float_bits(text)) ||
                         (place.field == "commit" && is_commit(text));
  if (text.empty() || is_own || is_figure || is_digest) {
    return text;
  }
  return own_pseudonym(text, place);
}

// Behind the first part that is not known, no part is: "n1.site.org" is the name of a host,
// although there is a field `site`.
std::pair<std::string, KnownRecords::Place> KnownRecords::kept_key(std::string_view key,
                                                                   const Place& place) {
  std::string kept;
  Place own = place;
  bool is_unknown = place.kind == FieldKind::map || place.kind == FieldKind::readings;
  for (const std::string& part : parts_of(key)) {
    is_unknown = is_unknown || !is_known_field(part);
    kept += (kept.empty() ? "" : ".") + (is_unknown ? own_pseudonym(part, own) : part);
    own = own.below(part);
    own.kind = is_unknown ? FieldKind::unknown : own.kind;
  }
  return {kept, own};
}

std::pair<std::string, KnownRecords::Place> KnownRecords::kept_name(const std::string& name,
                                                                    const Place& place) {
  if (place.kind == FieldKind::map) {
    return {own_pseudonym(name, place), Place{FieldKind::numbers, ""}};
  }
  if (place.kind == FieldKind::readings) {  // such as "disk read" and "link eth0"
    const bool is_own = has_known_words(name);
    const bool keeps_value = is_own || place.field != "facts";  // whose values are texts
    return {is_own ? name : own_pseudonym(name, place),
            Place{keeps_value ? FieldKind::numbers : FieldKind::unknown, ""}};
  }
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
  if (value.is_number() && !place.keeps_numbers()) {
    return own_pseudonym(value.dump(), place);
  }
  return value;
}

// Returns whether an object is a record of this program whatever its file is called.
bool KnownRecords::is_record(const Json& object) {
  constexpr int kMostSchema = 100;
  if (!object.is_object() || object.size() < 2 || !object.contains("schema") ||
      !object["schema"].is_number_unsigned() || object["schema"] > kMostSchema) {
    return false;
  }
  return std::all_of(object.items().begin(), object.items().end(),
                     [](const auto& field) { return is_known_field(field.key()); });
}

std::string KnownRecords::kept_lines(std::string_view lines, bool is_known) {
  std::string kept;
  const DamagedLines damaged = use_lines(lines, [&](std::string_view line) {
    if (!parse_json_line(line).is_object()) {
      return false;
    }
    const Json value = Json::parse(line);
    if (!is_known && !is_record(value)) {
      return false;
    }
    kept += kept_value(value, {}).dump() + "\n";
    return true;
  });
  removed_ += damaged.count + (damaged.last_is_unfinished ? 1 : 0);
  return kept;
}

std::string KnownRecords::kept_document(std::string_view text, bool is_known) {
  (void)parse_json(text);  // refuses more than the parser that keeps the order of fields
  const Json value = Json::parse(text);
  if (!value.is_object() || (!is_known && !is_record(value))) {
    throw DataError("it is no record of this program");
  }
  return kept_value(value, {}).dump(2) + "\n";
}

std::string KnownRecords::kept_scalar(const std::string& text, const Place& place) {
  if (place.keeps_numbers() && is_number(text)) {
    return text;
  }
  const bool is_truth = text == "true" || text == "false";
  return is_truth && (place.keeps_numbers() || place.keeps_words())
             ? text
             : yaml_text(kept_text(text, place));
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

KnownRecords::Kept KnownRecords::keep(const fs::path& file, std::string_view text) {
  removed_ = 0;
  const std::string suffix = file.extension();
  const bool is_known = is_known_file(file.stem().string());
  std::string kept;
  if (suffix == ".json" || file.filename() == "DONE") {
    kept = kept_document(text, is_known);
  } else if (suffix == ".jsonl") {
    kept = kept_lines(text, is_known);
    if (kept.empty() && !is_known) {
      throw DataError("it is no record of this program");
    }
  } else if (file.filename() == "config.yaml") {
    try {
      kept = kept_config(text);
    } catch (const ConfigError&) {
      throw DataError("no configuration that can be read");
    }
  } else {
    throw DataError("it is no record of this program");
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
