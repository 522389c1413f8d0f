#include "src/base/sealed_json.h"

#include <nlohmann/json.hpp>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::string_view kSealBegin = ",\n \"seal\": \"sha256:";
constexpr std::string_view kSealEnd = "\"\n}\n";

// Finds one plain field of the outermost object, and stops there.
class Search : public nlohmann::json_sax<json> {
 public:
  explicit Search(std::string_view name) : name_(name) {}
  std::optional<json> found;

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return value(v); }
  bool number_unsigned(number_unsigned_t v) override { return value(v); }
  bool number_float(number_float_t v, const string_t&) override { return value(v); }
  bool string(string_t& v) override { return value(v); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    is_next_ = depth_ == 1 && name == name_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  template <class T>
  bool value(T v) {
    if (is_next_) {
      found = json(v);
    }
    return !is_next_ && depth_ > 0;
  }
  bool open() {
    ++depth_;
    return !is_next_;
  }
  bool close() { return --depth_ > 0; }

  std::string_view name_;
  std::size_t depth_ = 0;
  bool is_next_ = false;  // whether the next value is the wanted one
};

std::string tail_of(std::string_view body) {
  return fmt::format("{}{}{}", kSealBegin, sha256_hex(body), kSealEnd);
}

std::size_t tail_bytes() {
  static const std::size_t bytes = tail_of("").size();
  return bytes;
}

// Returns the version that a text claims, whether or not its seal is valid, or -1 if it has none.
std::int64_t claimed_version(std::string_view text) {
  const std::optional<json> version = plain_field(text, "version");
  return version && version->is_number_integer() ? version->get<std::int64_t>() : -1;
}

void refuse_newer(std::int64_t found, std::int64_t version) {
  if (found > version) {
    throw DataError(
        fmt::format("version {} is newer than {}, the newest that this program reads: "
                    "use a newer trireme",
                    found, version));
  }
}

// Throws if the text does not end with a seal: its writer was interrupted, or it is another file.
void refuse_incomplete(std::string_view text, std::size_t body_bytes) {
  if (text.empty()) {
    throw DataError("the file is empty: restore it from a copy");
  }
  if (body_bytes == 0 || !text.substr(body_bytes).starts_with(kSealBegin) ||
      !text.ends_with(kSealEnd)) {
    throw DataError(
        fmt::format("cut short, or another kind of file: it has {} and no seal at the end: "
                    "restore it from a copy",
                    counted(static_cast<std::int64_t>(text.size()), "byte")));
  }
}

}  // namespace

std::optional<json> plain_field(std::string_view text, const char* name) {
  Search search(name);
  json::sax_parse(text, &search);
  return search.found;
}

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
    refuse_incomplete(text, body_bytes);
    throw DataError(
        fmt::format("damaged or edited: the seal of its {} bytes does not match (bytes [0, {}) "
                    "give {}): restore the file from a copy",
                    text.size(), body_bytes, sha256_hex(body)));
  }
  json object = parse_json(text);
  refuse_newer(count_field(object, "version", 1), version);
  return object;
}

}  // namespace trireme
