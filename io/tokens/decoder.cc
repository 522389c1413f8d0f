#include "io/tokens/decoder.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "io/tokens/byte_characters.h"
#include "io/tokens/text_step.h"
#include "io/tokens/unicode.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

using Texts = std::vector<std::string>;

void join_tokens(Texts& tokens) {
  std::string all;
  for (const std::string& token : tokens) {
    all += token;
  }
  tokens.assign(1, std::move(all));
}

void decode_bytes(Texts& tokens) {
  for (std::string& token : tokens) {
    token = from_byte_characters(token).value_or(token);
  }
  join_tokens(tokens);
  tokens.front() = with_replacements(tokens.front());
}

// Returns the byte of <0x41>, or -1.
int byte_of(const std::string& token) {
  int byte = -1;
  if (token.size() == 6 && token.starts_with("<0x") && token.back() == '>') {
    const char* const end = token.data() + 5;
    if (std::from_chars(token.data() + 3, end, byte, 16).ptr != end || byte < 0) {
      return -1;
    }
  }
  return byte;
}

// Joins runs of byte tokens to text. A run that is not UTF-8 becomes one U+FFFD per byte.
void decode_fallback(Texts& tokens) {
  Texts result;
  std::string bytes;
  const auto flush = [&] {
    if (is_utf8(bytes)) {
      result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      continue;
    }
    if (!bytes.empty()) {
      flush();
    }
    result.push_back(std::move(token));
  }
  if (!bytes.empty()) {
    flush();
  }
  tokens = std::move(result);
}

// Removes up to `start` copies of a character at the beginning, and up to `stop` at the end.
void strip(std::string& token, const std::string& content, std::int64_t start, std::int64_t stop) {
  for (std::int64_t i = 0; i < start && token.starts_with(content); ++i) {
    token.erase(0, content.size());
  }
  for (std::int64_t i = 0; i < stop && token.ends_with(content); ++i) {
    token.resize(token.size() - content.size());
  }
}

// The first token loses all marks, as in Hugging Face's tokenizers, unless none was put in front.
void decode_marks(Texts& tokens, const std::string& mark, bool prepends) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], mark, i == 0 && prepends ? "" : " ");
  }
}

}  // namespace

bool is_byte_token(const std::string& token) { return byte_of(token) >= 0; }

TokenDecoder::TokenDecoder(const nlohmann::json& value) {
  if (!value.is_null()) {
    add(value);
    return;
  }
  steps_.emplace_back([](Texts& tokens) {
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      tokens[i].insert(0, 1, ' ');
    }
  });
}

void TokenDecoder::add(const nlohmann::json& value) {
  const std::string& type = text_field(value, "type");
  if (joined_ && type != "Sequence" && type != "Fuse" && type != "Strip") {
    rewrites_text_ = true;
  }
  if (type == "Sequence") {
    check_fields(value, "decoder Sequence", {"type", "decoders"});
    for (const nlohmann::json& each : array_field(value, "decoders")) {
      add(each);
    }
  } else if (type == "ByteLevel") {
    check_fields(value, "decoder ByteLevel",
                 {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    joined_ = true;
    steps_.emplace_back(decode_bytes);
  } else if (type == "ByteFallback") {
    check_fields(value, "decoder ByteFallback", {"type"});
    joins_bytes_ = true;
    steps_.emplace_back(decode_fallback);
  } else if (type == "Fuse") {
    check_fields(value, "decoder Fuse", {"type"});
    joined_ = true;
    steps_.emplace_back(join_tokens);
  } else if (type == "Metaspace") {
    check_fields(value, "decoder Metaspace",
                 {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
    const bool adds = flag_or(value, "add_prefix_space", true);
    const std::string scheme = text_or(value, "prepend_scheme", adds ? "always" : "never");
    const std::string mark = text_or(value, "replacement", "\xE2\x96\x81");
    if (mark.empty()) {
      throw DataError("decoder Metaspace has an empty replacement");
    }
    steps_.emplace_back([mark, prepends = scheme != "never"](Texts& tokens) {
      decode_marks(tokens, mark, prepends);
    });
  } else if (type == "Replace") {
    check_fields(value, "decoder Replace", {"type", "pattern", "content"});
    steps_.emplace_back([from = text_pattern(value, "decoder Replace"),
                         to = text_field(value, "content")](Texts& tokens) {
      for (std::string& token : tokens) {
        token = replaced(token, from, to);
      }
    });
  } else if (type == "Strip") {
    check_fields(value, "decoder Strip", {"type", "content", "start", "stop"});
    if (text_field(value, "content").empty()) {
      throw DataError("decoder Strip has an empty content");
    }
    const std::int64_t start = count_field(value, "start");
    const std::int64_t stop = count_field(value, "stop");
    rewrites_text_ = rewrites_text_ || (joined_ && (start > 1 || stop > 0));
    steps_.emplace_back([content = text_field(value, "content"), start, stop](Texts& tokens) {
      for (std::string& token : tokens) {
        strip(token, content, start, stop);
      }
    });
  } else {
    refuse_type("decoder", type);
  }
}

std::string TokenDecoder::decode(Texts tokens) const {
  for (const Step& step : steps_) {
    step(tokens);
  }
  join_tokens(tokens);
  return std::move(tokens.front());
}

}  // namespace trireme
