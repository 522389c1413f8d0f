#include "src/policy/release.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr std::array kFields = {
    "version", "manifest_sha256", "uri", "label", "recipient", "reason", "user", "host", "time"};

// Throws DataError if the release has a field that `trireme release show` does not print.
void check_fields_of_release(const nlohmann::json& object) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
      throw DataError(fmt::format(
          "it has the unknown field '{}', which nobody who signs it is shown", printable(name)));
    }
  }
}

std::string release_text_field(const nlohmann::json& object, const char* name) {
  const std::string text = text_field(object, name);
  if (const std::string fault = fault_of_release_text(text); !fault.empty()) {
    throw DataError(fmt::format("'{}': {}", name, fault));
  }
  return text;
}

}  // namespace

std::string fault_of_release_text(const std::string& text) {
  constexpr std::size_t kMostBytes = 1000;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return "it is empty";
  }
  return text.size() <= kMostBytes
             ? std::string()
             : fmt::format("it has {} bytes, and can have {} at most", text.size(), kMostBytes);
}

std::string release_text(const Release& release) {
  const nlohmann::ordered_json object = {{"version", 1},
                                         {"manifest_sha256", release.manifest_sha256},
                                         {"uri", release.uri},
                                         {"label", label_json(release.label)},
                                         {"recipient", release.recipient},
                                         {"reason", release.reason},
                                         {"user", release.user},
                                         {"host", release.host},
                                         {"time", release.time}};
  return object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Release parse_release(std::string_view text, const std::string& origin) {
  try {
    const nlohmann::json object = parse_json(text);
    if (count_field(object, "version") != 1) {
      throw DataError("it has another version than 1");
    }
    check_fields_of_release(object);
    Release release{text_field(object, "manifest_sha256"),
                    text_field(object, "uri"),
                    kUnlabelled,
                    release_text_field(object, "recipient"),
                    release_text_field(object, "reason"),
                    text_field(object, "user"),
                    text_field(object, "host"),
                    text_field(object, "time")};
    if (release.manifest_sha256.size() != kDigestDigits) {
      throw DataError("'manifest_sha256' is no SHA-256");
    }
    if (!field(object, "label").is_null()) {
      release.label = label_of(object);
    }
    return release;
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

}  // namespace trireme
