// Cuts text into pieces that the model encodes one by one: the "pre_tokenizer" of tokenizer.json.
// Immutable, safe to use from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// A piece of text on its way through the steps.
struct TextPart {
  std::string_view text;
  // Each byte stands for one character of byte_characters.h; otherwise text is UTF-8.
  bool is_bytes = false;
  bool starts_text = false;  // the whole text starts here
};

class PartSink {
 public:
  virtual ~PartSink() = default;
  virtual void take(const TextPart& part) = 0;  // valid during the call only; never empty
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // part.text is not empty.
  virtual void split(const TextPart& part, PartSink& to) const = 0;
};

class PreTokenizer {
 public:
  // Reads ByteLevel, Split, Metaspace, Digits, Punctuation, WhitespaceSplit and Sequence; null cuts
  // nothing. Throws DataError for others.
  explicit PreTokenizer(const nlohmann::json& value);

  void split(const TextPart& part, PartSink& to) const;
  // Whether all pieces are bytes in the end.
  bool makes_bytes() const { return makes_bytes_; }
  bool cuts_nothing() const { return steps_.empty(); }

 private:
  void add(const nlohmann::json& value);

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool makes_bytes_ = false;
};

}  // namespace trireme
