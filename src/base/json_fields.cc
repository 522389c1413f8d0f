#include "src/base/json_fields.h"

#include <set>

#include <nlohmann/json.hpp>

#include "src/base/units.h"

namespace trireme {
namespace {

using nlohmann::json;

// The most memory that the values of one text may take, which can be 19 times the size of the text.
// The manifest of a million blocks stays below it.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
// Estimates of the memory for one value, and for a text, key or container in addition to its
// contents.
constexpr std::size_t kValueBytes = 32;
constexpr std::size_t kOwnedBytes = 64;

// Returns the library's message without its own names and without the text that it quotes, which
// may be a secret of another file: "line 1, column 3: syntax error ...".
std::string complaint_of(const json::exception& error) {
  std::string_view text = error.what();
  if (const std::size_t end = text.find("] "); text.starts_with('[') && end != text.npos) {
    text.remove_prefix(end + 2);
  }
  constexpr std::string_view kPlace = "parse error at ";
  text.remove_prefix(text.starts_with(kPlace) ? kPlace.size() : 0);
  std::string told(text);
  if (const std::size_t quote = told.find("; last read: "); quote != told.npos) {
    const std::size_t end = told.rfind("; expected ");
    told.erase(quote, end == told.npos || end < quote ? told.npos : end - quote);
  }
  return told;
}

// Scans a whole text without building values. Refuses duplicate keys, which JSON leaves undefined,
// and text that would take too much memory or stack. This comes before parsing, because even
// destroying a value that is too large can fail: nlohmann::json allocates memory for that.
class Scan : public nlohmann::json_sax<json> {
 public:
  explicit Scan(std::size_t text_bytes) : text_bytes_(text_bytes) {}
  bool null() override { return take(0); }
  bool boolean(bool) override { return take(0); }
  bool number_integer(number_integer_t) override { return take(0); }
  bool number_unsigned(number_unsigned_t) override { return take(0); }
  bool number_float(number_float_t, const string_t&) override { return take(0); }
  bool string(string_t& text) override { return take(kOwnedBytes + text.size()); }
  bool binary(binary_t&) override { return false; }  // JSON has no binary values
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    take(kOwnedBytes + name.size());
    if (!keys_.back().insert(name).second) {
      throw DataError(fmt::format("the key {} occurs twice", json(name).dump()));
    }
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const json::exception& error) override {
    if (at <= text_bytes_) {
      throw DataError("not JSON: " + complaint_of(error));
    }
    throw DataError(text_bytes_ == 0
                        ? "not JSON: the file is empty"
                        : fmt::format("not JSON: it breaks off after {}, as if its writer was "
                                      "interrupted",
                                      counted(static_cast<std::int64_t>(text_bytes_), "byte")));
  }

 private:
  bool take(std::size_t owned) {
    bytes_ += kValueBytes + owned;
    if (bytes_ > kMostBytes) {
      throw DataError(fmt::format(
          "it would need more than {} MiB of memory, more than any file of this program",
          kMostBytes >> 20));
    }
    return true;
  }
  bool open() {
    if (keys_.size() == kMostJsonDepth) {
      throw DataError(fmt::format("it is nested deeper than {} levels", kMostJsonDepth));
    }
    keys_.emplace_back();
    return take(kOwnedBytes);
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::size_t text_bytes_;
  std::vector<std::set<std::string>> keys_;  // keys of each open container; empty for an array
  std::size_t bytes_ = 0;
};

// Returns whether brackets outside of strings are nested deeper than kMostJsonDepth.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size() && depth <= kMostJsonDepth; ++at) {
    const char byte = text[at];
    if (in_string) {
      in_string = byte != '"';
      at += byte == '\\' ? 1 : 0;
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '[' || byte == '{') {
      ++depth;
    } else if (byte == ']' || byte == '}') {
      --depth;
    }
  }
  return depth > kMostJsonDepth;
}

const json& expect(bool holds, const json& value, const char* name, const char* expected) {
  if (!holds) {
    throw DataError(fmt::format("field '{}' is not {}", name, expected));
  }
  return value;
}

std::int64_t count_value(const json& value, const char* name, std::int64_t least,
                         std::int64_t most) {
  if (!value.is_number_unsigned() || most < 0 ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(most) ||
      value.get<std::int64_t>() < least) {
    throw DataError(fmt::format("field '{}' is {}, not a whole number from {} to {}", name,
                                value.is_number() ? value.dump() : value.type_name(), least, most));
  }
  return value.get<std::int64_t>();
}

}  // namespace

json parse_json(std::string_view text) {
  if (text.starts_with('\0')) {
    throw DataError("not JSON: line 1, column 1: bytes of zero, which a power cut can leave");
  }
  Scan scan(text.size());
  json::sax_parse(text, &scan);
  return json::parse(text);
}

json parse_json_line(std::string_view line) {
  return is_too_deep(line) ? json(json::value_t::discarded) : json::parse(line, nullptr, false);
}

const json& field(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) {
    throw DataError(fmt::format("field '{}' is missing", name));
  }
  return *found;
}

const std::string& text_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_string(), value, name, "a string").get_ref<const std::string&>();
}

const json& object_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_object(), value, name, "an object");
}

const json& array_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_array(), value, name, "a list");
}

bool flag_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_boolean(), value, name, "true or false").get<bool>();
}

std::int64_t count_field(const json& object, const char* name, std::int64_t least,
                         std::int64_t most) {
  return count_value(field(object, name), name, least, most);
}

std::vector<std::int64_t> counts_field(const json& object, const char* name) {
  std::vector<std::int64_t> values;
  for (const json& value : array_field(object, name)) {
    values.push_back(count_value(value, name, 0, kMostCount));
  }
  return values;
}

}  // namespace trireme
