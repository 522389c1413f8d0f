#include "io/tokens/pre_tokenizer.h"

#include <cstdint>
#include <functional>

#include <nlohmann/json.hpp>

#include "io/tokens/byte_characters.h"
#include "io/tokens/split_patterns.h"
#include "io/tokens/text_step.h"
#include "io/tokens/unicode.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

// What becomes of the matches of a pattern; the text between them is always cut off.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const std::string& name) {
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  throw DataError(fmt::format("the pre-tokenizer's behavior '{}' is not known", name));
}

// Emits the spans of a part. Spans must be added in order and without a gap.
class Spans {
 public:
  Spans(const TextPart& part, Behavior behavior, PartSink& to)
      : part_(part), behavior_(behavior), to_(to) {}

  void add(std::size_t end, bool is_match) {
    if (end == end_) {
      return;
    }
    const bool joins =
        pending_ && ((behavior_ == Behavior::contiguous && is_match == was_match_) ||
                     (behavior_ == Behavior::merged_with_previous && is_match && !was_match_) ||
                     (behavior_ == Behavior::merged_with_next && !is_match && was_match_));
    if (!joins) {
      flush();
      begin_ = end_;
    }
    pending_ = true;
    was_match_ = is_match;
    end_ = end;
  }

  void flush() {
    if (pending_ && !(behavior_ == Behavior::removed && was_match_)) {
      to_.take({part_.text.substr(begin_, end_ - begin_), part_.is_bytes,
                part_.starts_text && begin_ == 0});
    }
    pending_ = false;
  }

 private:
  const TextPart& part_;
  Behavior behavior_;
  PartSink& to_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool pending_ = false;
  bool was_match_ = false;
};

// Cuts with a pattern that matches everywhere.
class ScannerSplit final : public PreTokenizerStep {
 public:
  explicit ScannerSplit(SplitScanner scanner) : scanner_(scanner) {}
  void split(const TextPart& part, PartSink& to) const override {
    for (std::size_t at = 0; at < part.text.size();) {
      const std::size_t end = scanner_(part.text, at);
      to.take({part.text.substr(at, end - at), false, part.starts_text && at == 0});
      at = end;
    }
  }

 private:
  SplitScanner scanner_;
};

// Cuts at characters, or runs of them, that a function recognizes.
class CharacterSplit final : public PreTokenizerStep {
 public:
  using Matches = std::function<bool(char32_t)>;
  // Every `run` characters in a row are one match; fewer are none.
  CharacterSplit(Matches matches, Behavior behavior, std::size_t run = 1)
      : matches_(std::move(matches)), behavior_(behavior), run_(run) {}

  void split(const TextPart& part, PartSink& to) const override {
    Spans spans(part, behavior_, to);
    std::size_t length = 0;  // of the run of matching characters that ends at `at`
    std::size_t start = 0;   // of that run
    for (std::size_t at = 0; at < part.text.size();) {
      const std::size_t before = at;
      const char32_t code = part.is_bytes
                                ? kByteCharacters[static_cast<unsigned char>(part.text[at++])]
                                : next_character(part.text, at);
      if (!matches_(code)) {
        length = 0;
      } else if (start = length == 0 ? before : start; ++length == run_) {
        spans.add(start, false);
        spans.add(at, true);
        length = 0;
      }
    }
    spans.add(part.text.size(), false);
    spans.flush();
  }

 private:
  Matches matches_;
  Behavior behavior_;
  std::size_t run_;
};

class TextSplit final : public PreTokenizerStep {
 public:
  TextSplit(std::string pattern, Behavior behavior)
      : pattern_(std::move(pattern)), behavior_(behavior) {}
  void split(const TextPart& part, PartSink& to) const override {
    Spans spans(part, behavior_, to);
    for (std::size_t at = 0; (at = part.text.find(pattern_, at)) != std::string_view::npos;) {
      spans.add(at, false);
      at += pattern_.size();
      spans.add(at, true);
    }
    spans.add(part.text.size(), false);
    spans.flush();
  }

 private:
  std::string pattern_;
  Behavior behavior_;
};

class ByteLevel final : public PreTokenizerStep {
 public:
  explicit ByteLevel(const nlohmann::json& value)
      : adds_space_(flag_or(value, "add_prefix_space", true)),
        uses_regex_(flag_or(value, "use_regex", true)) {}

  void split(const TextPart& part, PartSink& to) const override {
    std::string with_space;
    std::string_view text = part.text;
    if (adds_space_ && text.front() != ' ') {
      with_space = ' ';
      with_space += text;
      text = with_space;
    }
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = uses_regex_ ? scan_gpt2(text, at) : text.size();
      to.take({text.substr(at, end - at), true, part.starts_text && at == 0});
      at = end;
    }
  }

 private:
  bool adds_space_;
  bool uses_regex_;
};

class Metaspace final : public PreTokenizerStep {
 public:
  explicit Metaspace(const nlohmann::json& value)
      : mark_(text_or(value, "replacement", "\xE2\x96\x81")),
        splits_(flag_or(value, "split", true)) {
    const bool adds = flag_or(value, "add_prefix_space", true);
    scheme_ = text_or(value, "prepend_scheme", adds ? "always" : "never");
    if (scheme_ != "always" && scheme_ != "first" && scheme_ != "never") {
      throw DataError(
          fmt::format("pre-tokenizer Metaspace has the unknown prepend_scheme '{}'", scheme_));
    }
    if (mark_.empty()) {
      throw DataError("pre-tokenizer Metaspace has an empty replacement");
    }
  }

  void split(const TextPart& part, PartSink& to) const override {
    std::string text = replaced(part.text, " ", mark_);
    if ((scheme_ == "always" || (scheme_ == "first" && part.starts_text)) &&
        !text.starts_with(mark_)) {
      text.insert(0, mark_);
    }
    if (!splits_) {
      to.take({text, false, part.starts_text});
      return;
    }
    TextSplit(mark_, Behavior::merged_with_next).split({text, false, part.starts_text}, to);
  }

 private:
  std::string mark_;
  std::string scheme_;
  bool splits_;
};

std::unique_ptr<PreTokenizerStep> make_split(const nlohmann::json& value) {
  check_fields(value, "pre-tokenizer Split", {"type", "pattern", "behavior", "invert"});
  const Behavior behavior = behavior_of(text_field(value, "behavior"));
  if (flag_or(value, "invert", false)) {
    throw DataError("pre-tokenizer Split inverts its pattern ('invert'), which is not supported");
  }
  const nlohmann::json& pattern = object_field(value, "pattern");
  if (!pattern.contains("Regex")) {
    return std::make_unique<TextSplit>(text_pattern(value, "pre-tokenizer Split"), behavior);
  }
  const std::string& regex = text_field(pattern, "Regex");
  if (regex == "[0-9][0-9][0-9]") {
    return std::make_unique<CharacterSplit>([](char32_t c) { return c >= '0' && c <= '9'; },
                                            behavior, 3);
  }
  const SplitScanner scanner = scanner_of(regex);
  if (scanner == nullptr || behavior != Behavior::isolated) {
    throw DataError(fmt::format(
        "pre-tokenizer Split uses the regular expression '{}' with the behavior {}, which is not "
        "supported (docs/tokenizers.md lists what is)",
        regex, text_field(value, "behavior")));
  }
  return std::make_unique<ScannerSplit>(scanner);
}

auto has_class(std::uint8_t bits) {
  return [bits](char32_t code) { return (character_class(code) & bits) != 0; };
}

// Passes the parts of one step on to the next.
class Chain final : public PartSink {
 public:
  Chain(const std::vector<std::unique_ptr<PreTokenizerStep>>& steps, std::size_t next, PartSink& to)
      : steps_(steps), next_(next), to_(to) {}
  void take(const TextPart& part) override {
    if (next_ == steps_.size()) {
      to_.take(part);
      return;
    }
    Chain rest(steps_, next_ + 1, to_);
    steps_[next_]->split(part, rest);
  }

 private:
  const std::vector<std::unique_ptr<PreTokenizerStep>>& steps_;
  std::size_t next_;
  PartSink& to_;
};

}  // namespace

PreTokenizer::PreTokenizer(const nlohmann::json& value) {
  if (!value.is_null()) {
    add(value);
  }
}

void PreTokenizer::add(const nlohmann::json& value) {
  const std::string& type = text_field(value, "type");
  if (type == "Sequence") {
    check_fields(value, "pre-tokenizer Sequence", {"type", "pretokenizers"});
    for (const nlohmann::json& each : array_field(value, "pretokenizers")) {
      add(each);
    }
  } else if (type == "ByteLevel") {
    check_fields(value, "pre-tokenizer ByteLevel",
                 {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (makes_bytes_) {
      throw DataError("two pre-tokenizers ByteLevel follow each other, which is not supported");
    }
    steps_.push_back(std::make_unique<ByteLevel>(value));
    makes_bytes_ = true;
  } else if (type == "Digits") {
    check_fields(value, "pre-tokenizer Digits", {"type", "individual_digits"});
    steps_.push_back(std::make_unique<CharacterSplit>(
        has_class(kNumber),
        flag_or(value, "individual_digits", false) ? Behavior::isolated : Behavior::contiguous));
  } else if (type == "Punctuation") {
    check_fields(value, "pre-tokenizer Punctuation", {"type", "behavior"});
    steps_.push_back(std::make_unique<CharacterSplit>(
        has_class(kPunctuation), behavior_of(text_or(value, "behavior", "Isolated"))));
  } else if (type == "WhitespaceSplit") {
    check_fields(value, "pre-tokenizer WhitespaceSplit", {"type"});
    steps_.push_back(std::make_unique<CharacterSplit>(has_class(kSpace), Behavior::removed));
  } else if (makes_bytes_ && (type == "Split" || type == "Metaspace")) {
    std::unique_ptr<PreTokenizerStep> step = type == "Split" ? make_split(value) : nullptr;
    if (dynamic_cast<CharacterSplit*>(step.get()) == nullptr) {
      throw DataError(fmt::format("the pre-tokenizer {} after ByteLevel is not supported", type));
    }
    steps_.push_back(std::move(step));
  } else if (type == "Split") {
    steps_.push_back(make_split(value));
  } else if (type == "Metaspace") {
    check_fields(value, "pre-tokenizer Metaspace",
                 {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
    steps_.push_back(std::make_unique<Metaspace>(value));
  } else {
    refuse_type("pre-tokenizer", type);
  }
}

void PreTokenizer::split(const TextPart& part, PartSink& to) const {
  if (!part.text.empty()) {
    Chain(steps_, 0, to).take(part);
  }
}

}  // namespace trireme
