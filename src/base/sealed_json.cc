#include "src/base/sealed_json.h"

#include <nlohmann/json.hpp>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

std::string tail_of(std::string_view body) {
  return fmt::format(",\n \"seal\": \"sha256:{}\"\n}}\n", sha256_hex(body));
}

std::size_t tail_bytes() {
  static const std::size_t bytes = tail_of("").size();
  return bytes;
}

// The version that a text claims, whether or not its seal holds; -1 where it can't be read.
std::int64_t claimed_version(std::string_view text) {
  try {
    return count_field(parse_json(text), "version");
  } catch (const DataError&) {
    return -1;
  }
}

void refuse_newer(std::int64_t found, std::int64_t version) {
  if (found > version) {
    throw DataError(
        fmt::format("version {} is newer than {}, the newest that this program reads: "
                    "use a newer trireme",
                    found, version));
  }
}

}  // namespace

std::string seal_json(const nlohmann::ordered_json& object) {
  std::string text = object.dump(1, ' ', false, json::error_handler_t::replace);
  check(object.is_object() && !object.empty() && text.ends_with("\n}"), "an object is sealed");
  text.resize(text.size() - 2);
  return seal_body(std::move(text));
}

std::string seal_body(std::string body) {
  body += tail_of(body);
  return body;
}

json unseal_json(std::string_view text, std::int64_t version) {
  const std::size_t body_bytes = text.size() > tail_bytes() ? text.size() - tail_bytes() : 0;
  const std::string_view body = text.substr(0, body_bytes);
  if (body_bytes == 0 || text.substr(body_bytes) != tail_of(body)) {
    refuse_newer(claimed_version(text), version);
    throw DataError(fmt::format(
        "damaged or edited: the seal of its {} bytes does not match (bytes [0, {}) give {}): "
        "restore it from a copy, or make it again",
        text.size(), body_bytes, sha256_hex(body)));
  }
  json object = parse_json(text);
  refuse_newer(count_field(object, "version"), version);
  return object;
}

}  // namespace trireme
