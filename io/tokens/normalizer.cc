#include "io/tokens/normalizer.h"

#include <nlohmann/json.hpp>

#include "io/tokens/text_step.h"
#include "src/base/json_fields.h"
#include "src/base/overloaded.h"

namespace trireme {

TextNormalizer::TextNormalizer(const nlohmann::json& value) {
  if (!value.is_null()) {
    add(value);
  }
}

void TextNormalizer::add(const nlohmann::json& value) {
  const std::string& type = text_field(value, "type");
  if (type == "Sequence") {
    check_fields(value, "normalizer Sequence", {"type", "normalizers"});
    for (const nlohmann::json& each : array_field(value, "normalizers")) {
      add(each);
    }
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    check_fields(value, "normalizer " + type, {"type"});
    const bool composes = type.back() == 'C';
    steps_.emplace_back(type.size() == 4 ? composes ? NormalForm::nfkc : NormalForm::nfkd
                        : composes       ? NormalForm::nfc
                                         : NormalForm::nfd);
  } else if (type == "Prepend") {
    check_fields(value, "normalizer Prepend", {"type", "prepend"});
    steps_.emplace_back(Prepend{text_field(value, "prepend")});
  } else if (type == "Replace") {
    check_fields(value, "normalizer Replace", {"type", "pattern", "content"});
    steps_.emplace_back(
        Replace{text_pattern(value, "normalizer Replace"), text_field(value, "content")});
  } else if (type == "Strip") {
    check_fields(value, "normalizer Strip", {"type", "strip_left", "strip_right"});
    steps_.emplace_back(Strip{flag_field(value, "strip_left"), flag_field(value, "strip_right")});
  } else {
    refuse_type("normalizer", type);
  }
}

std::string_view stripped(std::string_view text, bool left, bool right) {
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if ((character_class(next_character(text, at)) & kSpace) == 0) {
      begin = std::min(begin, start);
      end = at;
    }
  }
  begin = left ? begin : 0;
  end = right ? end : text.size();
  return end > begin ? text.substr(begin, end - begin) : std::string_view();
}

std::string TextNormalizer::apply(std::string_view text) const {
  std::string result(text);
  for (const auto& step : steps_) {
    result = std::visit(
        Overloaded{[&](NormalForm form) { return normalized(result, form); },
                   [&](const Prepend& p) { return result.empty() ? result : p.text + result; },
                   [&](const Replace& r) { return replaced(result, r.from, r.to); },
                   [&](const Strip& s) { return std::string(stripped(result, s.left, s.right)); }},
        step);
  }
  return result;
}

}  // namespace trireme
