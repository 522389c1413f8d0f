// Changes text before it is cut into pieces: the "normalizer" of tokenizer.json. Immutable.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/tokens/unicode.h"

namespace trireme {

class TextNormalizer {
 public:
  // Reads NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip and Sequence; null changes nothing. Throws
  // DataError for others.
  explicit TextNormalizer(const nlohmann::json& value);

  bool changes_nothing() const { return steps_.empty(); }
  // text: valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    std::string from;
    std::string to;
  };
  struct Strip {
    bool left;
    bool right;
  };
  void add(const nlohmann::json& value);

  std::vector<std::variant<NormalForm, Prepend, Replace, Strip>> steps_;
};

// Returns text without white space at its ends.
std::string_view stripped(std::string_view text, bool left, bool right);

}  // namespace trireme
