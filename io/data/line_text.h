// LineText takes the text out of objects of JSON, such as the lines of JSON Lines: the value of one
// field of the outermost object. simdjson reads what is short and in order; everything else is read
// by TextField, whose verdict and message count. For one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

class LineText {
 public:
  explicit LineText(const std::string& field);  // borrowed
  ~LineText();
  LineText(LineText&&) noexcept;

  // Throws DataError if the object is not JSON, is nested too deeply, or has no such field or two
  // of them.
  std::string text_in(std::string_view object);

 private:
  struct Parser;

  // Returns nothing unless it is certain that TextField would find the same text.
  std::optional<std::string> quickly(std::string_view object);

  const std::string& field_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace trireme
