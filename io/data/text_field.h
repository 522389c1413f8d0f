// TextField extracts the text of one field of a JSON object while nlohmann::json parses it. It
// builds no tree, so a line takes no more memory than its longest string. Like parse_json(), it
// refuses deep nesting and a second occurrence of the field; it does not check other keys for
// duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace trireme {

class TextField : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TextField(const std::string& name) : name_(name) {}

  // The value of the field in the outermost object.
  std::optional<std::string> text;
  std::string error;  // why parsing failed or stopped early

  bool string(std::string& value) override {
    return other([&] { text = std::move(value); });
  }
  bool null() override { return other(); }
  bool boolean(bool /*value*/) override { return other(); }
  bool number_integer(std::int64_t /*value*/) override { return other(); }
  bool number_unsigned(std::uint64_t /*value*/) override { return other(); }
  bool number_float(double /*value*/, const std::string& /*digits*/) override { return other(); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return other(); }
  bool start_object(std::size_t /*elements*/) override { return open(true); }
  bool start_array(std::size_t /*elements*/) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    is_field_ = depth_ == 1 && in_object_ && name == name_;
    if (is_field_ && std::exchange(found_, true)) {
      error = fmt::format("the field '{}' occurs twice", name_);
    }
    return error.empty();
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::json::exception& what) override {
    // The message quotes what was read, which may be the whole line.
    constexpr std::size_t kMostWords = 200;
    error = "not JSON: " + std::string(what.what()).substr(0, kMostWords);
    return false;
  }

 private:
  static constexpr int kMostDepth = 32;  // the same limit as in parse_json()

  // Any value completes the key before it.
  template <class Take>
  bool other(Take take) {
    if (is_field_ && depth_ == 1) {
      take();
      is_field_ = false;
    }
    return true;
  }
  bool other() {
    return other([] {});
  }
  bool open(bool object) {
    other();
    in_object_ = depth_ == 0 ? object : in_object_;
    if (++depth_ > kMostDepth) {
      error = fmt::format("nested deeper than {} levels", kMostDepth);
    }
    return error.empty();
  }
  bool close() {
    --depth_;
    return true;
  }

  const std::string& name_;
  std::int64_t depth_ = 0;
  bool in_object_ = false;  // whether the outermost value is an object
  bool is_field_ = false;
  bool found_ = false;
};

}  // namespace trireme
