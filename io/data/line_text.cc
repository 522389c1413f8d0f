#include "io/data/line_text.h"

#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>
#include <simdjson.h>

#include "io/data/text_field.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// simdjson needs about 14 bytes of memory per byte of the object, and TextField only the text.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::size_t kMostDepth = 30;  // fewer than TextField allows

}  // namespace

struct LineText::Parser {
  Parser() : is_usable(dom.allocate(std::size_t{1} << 16, kMostDepth) == simdjson::SUCCESS) {}

  simdjson::dom::parser dom{kMostBytes};  // grows, up to this size
  bool is_usable;
  std::string padded;
};

LineText::LineText(const std::string& field) : field_(field), parser_(std::make_unique<Parser>()) {}

LineText::~LineText() = default;
LineText::LineText(LineText&&) noexcept = default;

std::optional<std::string> LineText::quickly(std::string_view object) {
  if (!parser_->is_usable || object.size() > kMostBytes) {
    return std::nullopt;
  }
  std::string& padded = parser_->padded;
  padded.assign(object);
  padded.resize(object.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::object members;
  if (parser_->dom.parse(padded.data(), object.size(), false).get(members) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  std::optional<std::string> found;
  for (const simdjson::dom::key_value_pair member : members) {
    if (member.key != field_) {
      continue;
    }
    std::string_view text;
    if (found || member.value.get(text) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    found.emplace(text);
  }
  return found;
}

std::string LineText::text_in(std::string_view object) {
  if (std::optional<std::string> text = quickly(object)) {
    return std::move(*text);
  }
  TextField found(field_);
  const bool is_valid = nlohmann::json::sax_parse(object, &found);
  if (is_valid && found.text) {
    return std::move(*found.text);
  }
  throw DataError(is_valid ? fmt::format("there is no text field '{}': name the field that holds "
                                         "the text with --field",
                                         field_)
                           : found.error);
}

}  // namespace trireme
