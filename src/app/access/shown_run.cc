#include "src/app/access/shown_run.h"

#include <nlohmann/json.hpp>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

// Redacts the words of a list together, since one may be an option that makes the next a secret.
void redact_words(const std::string& name, std::vector<std::string>& words) {
  const std::string text =
      nlohmann::json(words).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto redacted = nlohmann::json::parse(redact(text).text, nullptr, false);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool known = redacted.is_array() && i < redacted.size() && redacted[i].is_string();
    words[i] = redact_value(name, known ? redacted[i].get<std::string>() : words[i]).text;
  }
}

}  // namespace

void redact_run(RunFolder& run) {
  run.name = redact_path(run.name);
  run.config = redact(run.config).text;
  run.config_error = redact(run.config_error).text;
  // Each value by itself, because the text without secrets may no longer be valid YAML.
  for (ConfigEntry& entry : run.settings) {
    if (entry.value.kind == ConfigValue::Kind::list) {
      redact_words(entry.key, entry.value.items);
      continue;
    }
    for (std::string& item : entry.value.items) {
      item = redact_value(entry.key, item).text;
    }
  }
  for (std::string& remark : run.remarks) {
    remark = redact(remark).text;
  }
}

}  // namespace trireme
