#include "src/policy/release.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::size_t kDigestDigits = 64;

}  // namespace

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
    Release release{text_field(object, "manifest_sha256"),
                    text_field(object, "uri"),
                    kUnlabelled,
                    text_field(object, "recipient"),
                    text_field(object, "reason"),
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
