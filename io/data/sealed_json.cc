#include "io/data/sealed_json.h"

#include <set>
#include <vector>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr std::int64_t kMaxInteger = std::int64_t{1} << 60;

std::string tail_of(std::string_view body) {
  return fmt::format(",\n \"seal\": \"sha256:{}\"\n}}\n", sha256_hex(body));
}

std::size_t tail_bytes() {
  static const std::size_t bytes = tail_of("").size();
  return bytes;
}

// Follows the parser and refuses what JSON leaves open.
class Guard {
 public:
  explicit Guard(const std::string& name) : name_(name) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) {
      throw DataError(fmt::format("{}: nested deeper than {} levels", name_, kMaxDepth));
    }
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second) {
        throw DataError(fmt::format("{}: the key '{}' stands there twice", name_, key));
      }
    }
    return true;
  }

 private:
  const std::string& name_;
  std::vector<std::set<std::string>> keys_;
};

const json& field(const json& object, const char* key, const std::string& name) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw DataError(fmt::format("{}: the field '{}' is missing", name, key));
  }
  return *found;
}

// The version that a text claims, whether or not its seal holds; -1 where it can't be read.
std::int64_t claimed_version(std::string_view text, const std::string& name) {
  try {
    return integer_field(parse_strict_json(text, name), "version", name);
  } catch (const DataError&) {
    return -1;
  }
}

void refuse_newer(std::int64_t found, std::int64_t version, const std::string& name) {
  if (found > version) {
    throw DataError(
        fmt::format("{}: version {} is newer than {}, the newest that this program "
                    "reads: use a newer trireme",
                    name, found, version));
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

json parse_strict_json(std::string_view text, const std::string& name) {
  try {
    return json::parse(text, Guard(name));
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: not valid JSON: {}", name, error.what()));
  }
}

json unseal_json(std::string_view text, const std::string& name, std::int64_t version) {
  const std::size_t body_bytes = text.size() > tail_bytes() ? text.size() - tail_bytes() : 0;
  const std::string_view tail = text.substr(body_bytes);
  const std::string expected = tail_of(text.substr(0, body_bytes));
  if (body_bytes == 0 || tail != expected) {
    refuse_newer(claimed_version(text, name), version, name);
    throw DataError(fmt::format(
        "{}: damaged or edited: the seal of its {} bytes does not match (bytes [0, {}) give {}): "
        "restore it from a copy, or pack again",
        name, text.size(), body_bytes, sha256_hex(text.substr(0, body_bytes))));
  }
  json object = parse_strict_json(text, name);
  refuse_newer(integer_field(object, "version", name), version, name);
  return object;
}

std::int64_t integer_field(const json& object, const char* key, const std::string& name,
                           std::int64_t least) {
  const json& value = field(object, key, name);
  const bool in_range = value.is_number_unsigned() && value.get<std::uint64_t>() <= kMaxInteger;
  if (!in_range || value.get<std::int64_t>() < least) {
    throw DataError(fmt::format("{}: '{}' is {}, not an integer from {} to 2^60", name, key,
                                value.dump(-1, ' ', true, json::error_handler_t::replace), least));
  }
  return value.get<std::int64_t>();
}

const std::string& text_field(const json& object, const char* key, const std::string& name) {
  const json& value = field(object, key, name);
  if (!value.is_string()) {
    throw DataError(fmt::format("{}: '{}' is not a text", name, key));
  }
  return value.get_ref<const std::string&>();
}

const json& array_field(const json& object, const char* key, const std::string& name) {
  const json& value = field(object, key, name);
  if (!value.is_array()) {
    throw DataError(fmt::format("{}: '{}' is not a list", name, key));
  }
  return value;
}

}  // namespace trireme
