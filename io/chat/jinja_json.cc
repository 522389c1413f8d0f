#include <cmath>

#include "io/chat/jinja_value.h"
#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// JinjaJson writes values, and takes what each part costs before it is made.
class JinjaJson {
 public:
  JinjaJson(std::int64_t indent, JinjaBudget& budget) : indent_(indent), budget_(budget) {}

  void write(const JinjaValue& value, std::int64_t level) {
    budget_.spend(kValue);
    if (const std::string* string = value.as_text()) {
      write_text(*string);
    } else if (const JinjaList* list = value.as_list()) {
      write_list(*list, level);
    } else if (value.as<JinjaValue::Mapping>() != nullptr) {
      write_mapping(*value.as_mapping(), level);
    } else {
      put(plain(value));
    }
  }

  std::string text;

 private:
  static constexpr std::int64_t kValue = 32;
  static constexpr std::size_t kPiece = 4096;

  void put(std::string_view part) {
    budget_.spend(static_cast<std::int64_t>(part.size()));
    text += part;
  }

  void write_text(std::string_view string) {
    put("\"");
    for (std::size_t at = 0; at < string.size(); at += kPiece) {
      put(json_escaped(string.substr(at, kPiece)));
    }
    put("\"");
  }

  void break_line(std::int64_t level) {
    if (indent_ >= 0) {
      put("\n" + std::string(static_cast<std::size_t>(indent_ * level), ' '));
    }
  }

  void separate(bool is_first, std::int64_t level) {
    put(is_first ? "" : indent_ < 0 ? ", " : ",");
    break_line(level + 1);
  }

  void write_list(const JinjaList& list, std::int64_t level) {
    put("[");
    for (const JinjaValue& item : list) {
      separate(&item == list.data(), level);
      write(item, level + 1);
    }
    if (!list.empty()) {
      break_line(level);
    }
    put("]");
  }

  void write_mapping(const JinjaMapping& mapping, std::int64_t level) {
    put("{");
    for (const auto& pair : mapping) {
      separate(&pair == mapping.data(), level);
      write_text(pair.first);
      put(": ");
      write(pair.second, level + 1);
    }
    if (!mapping.empty()) {
      break_line(level);
    }
    put("}");
  }

  static std::string plain(const JinjaValue& value) {
    if (value.is_none()) {
      return "null";
    }
    if (const bool* truth = value.as<bool>()) {
      return *truth ? "true" : "false";
    }
    if (value.is_whole()) {
      return std::to_string(value.whole());
    }
    if (value.is_number() && std::isfinite(value.number())) {
      return python_digits(value.number());
    }
    throw DataError(fmt::format("JSON has no form for a {}", value.type_name()));
  }

  std::int64_t indent_;
  JinjaBudget& budget_;
};

}  // namespace

std::string json_of_value(const JinjaValue& value, std::int64_t indent, JinjaBudget& budget) {
  JinjaJson json(indent, budget);
  json.write(value, 0);
  return std::move(json.text);
}

}  // namespace trireme
