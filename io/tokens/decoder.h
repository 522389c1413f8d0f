// Turns tokens back into text: the "decoder" of tokenizer.json. Immutable.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class TokenDecoder {
 public:
  // Reads ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip and Sequence; null joins the
  // tokens by blanks. Throws DataError for others.
  explicit TokenDecoder(const nlohmann::json& value);

  // tokens: valid UTF-8. So is the result: bytes that are not become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  using Step = std::function<void(std::vector<std::string>&)>;
  void add(const nlohmann::json& value);

  std::vector<Step> steps_;
};

}  // namespace trireme
