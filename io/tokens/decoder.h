// Turns tokens back into text: the "decoder" of tokenizer.json. Immutable.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Returns whether a token is a byte in the form <0x41>.
bool is_byte_token(const std::string& token);

class TokenDecoder {
 public:
  // Reads ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip and Sequence; null joins the
  // tokens by blanks. Throws DataError for others.
  explicit TokenDecoder(const nlohmann::json& value);

  // tokens: valid UTF-8. So is the result: bytes that are not become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

  // Returns whether a run of byte tokens becomes text as a whole (ByteFallback).
  bool joins_bytes() const { return joins_bytes_; }
  // Returns whether a step may change the text of tokens when others follow them, other than by
  // joins_bytes(): one that searches in the joined text, or strips more of it than a first blank.
  bool rewrites_text() const { return rewrites_text_; }

 private:
  using Step = std::function<void(std::vector<std::string>&)>;
  void add(const nlohmann::json& value);

  std::vector<Step> steps_;
  bool joined_ = false;  // whether a step has joined the tokens
  bool joins_bytes_ = false;
  bool rewrites_text_ = false;
};

}  // namespace trireme
