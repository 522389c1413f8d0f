// Reads and writes text with blocks in PEM (RFC 7468), such as files of keys, line by line.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace trireme {

// Returns a block, with a label such as "PUBLIC KEY", in lines of 64 characters.
std::string pem(std::string_view label, std::string_view contents);
// Returns the line with which such a block begins.
std::string begin_line(std::string_view label);

class PemReader {
 public:
  // origin: what messages call the text; outlives the reader.
  PemReader(std::string_view text, const std::string& origin)
      : lines_(std::string(text)), origin_(origin) {}

  // Returns the next line without blanks at its end, or nothing at the end of the text.
  std::optional<std::string> line();
  // Returns the bytes in the block whose first line was just read. Throws DataError.
  std::string contents(std::string_view label);
  // Throws DataError that names the text and the line that was just read.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::istringstream lines_;
  const std::string& origin_;
  int number_ = 0;
};

}  // namespace trireme
