// Writes any JSON, lines of JSON and YAML anew as an archive with --strict does: what comes out
// holds no text but pseudonyms, figures and what the program's own formats say.
#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/config_tree.h"
#include "src/study/records/known_fields.h"
#include "src/study/records/known_records.h"
#include "tests/fuzz/fuzz_target.h"

namespace strict_records {

using trireme::require;

bool is_pseudonym(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view kind = text.substr(0, std::min(dash, text.size()));
  return (kind == "text" || kind == "host" || kind == "file") && dash + 1 < text.size() &&
         text.find_first_not_of("0123456789", dash + 1) == text.npos;
}

// Returns whether a text has only characters that numbers, sizes and versions have.
bool is_figure(std::string_view text) {
  return text.find_first_not_of("0123456789+-.eEKMGTiBnafvINF") == text.npos;
}

// Returns whether all parts of a key such as "train.steps" are known.
bool has_known_parts(std::string_view key) {
  const std::size_t dot = key.find('.');
  return trireme::is_known_field(key.substr(0, dot)) &&
         (dot == key.npos || has_known_parts(key.substr(dot + 1)));
}

// Returns whether all words of a text are known.
bool has_known_words(std::string_view text) {
  const std::size_t blank = text.find_first_of(" =");
  const std::string_view word = text.substr(0, blank);
  return (trireme::is_known_word(word) || trireme::is_known_field(word) || is_figure(word)) &&
         (blank == text.npos || has_known_words(text.substr(blank + 1)));
}

bool may_leave(const std::string& text) {
  const bool has_figures_alone = text.find_first_not_of("0123456789.-:TZ x") == text.npos;
  const bool is_bits =
      text.size() <= 10 && text.find_first_not_of("0123456789abcdefx") == text.npos;
  return is_pseudonym(text) || trireme::is_known_word(text) || has_known_words(text) ||
         has_figures_alone || is_bits || is_figure(text);
}

void require_strict(const nlohmann::json& value) {
  if (value.is_object()) {
    for (const auto& [name, each] : value.items()) {
      require(has_known_parts(name) || has_known_words(name) || is_pseudonym(name));
      require_strict(each);
    }
  } else if (value.is_array()) {
    for (const nlohmann::json& each : value) {
      require_strict(each);
    }
  } else if (value.is_string()) {
    require(may_leave(value.get<std::string>()));
  }
}

// A scalar of YAML may also be a number, whose letters are those of units and exponents.
bool may_leave_yaml(const std::string& text) {
  return may_leave(text) || text == "true" || text == "false" || is_figure(text);
}

void require_strict(const std::string& yaml) {
  for (const trireme::ConfigEntry& entry : trireme::parse_config(yaml, "")) {
    std::string_view key = entry.key;
    for (std::size_t dot = 0; dot != key.npos; key.remove_prefix(dot == key.npos ? 0 : dot + 1)) {
      dot = key.find('.');
      const std::string_view part = key.substr(0, dot);
      require(part.empty() || trireme::is_known_field(part) || is_pseudonym(part));
    }
    for (const std::string& item : entry.value.items) {
      if (entry.value.kind == trireme::ConfigValue::Kind::mappings) {
        require_strict(item);
      } else {
        require(may_leave_yaml(item));
      }
    }
  }
}

}  // namespace strict_records

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view input = trireme::text_of(data, bytes);
  trireme::KnownRecords records;
  trireme::refuses_only_with<trireme::DataError>([&] {
    const std::string kept = records.keep("metrics.json", input).text;
    strict_records::require_strict(nlohmann::json::parse(kept));
  });
  const std::string lines = records.keep("metrics.jsonl", input).text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    strict_records::require_strict(nlohmann::json::parse(lines.substr(at, end - at)));
    at = end + 1;
  }
  trireme::refuses_only_with<trireme::DataError>([&] {
    const std::string kept = records.keep("config.yaml", input).text;
    trireme::refuses_only_with<trireme::ConfigError>([&] { strict_records::require_strict(kept); });
  });
  for (const std::filesystem::path& part :
       std::filesystem::path(records.keep_path("a" + std::string(input.substr(0, 40))))) {
    trireme::require(trireme::is_known_file(part.stem().string()) ||
                     strict_records::is_pseudonym(part.stem().string()) || part.empty());
  }
  return 0;
}
