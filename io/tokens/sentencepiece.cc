#include "io/tokens/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/tokens/bpe_model.h"
#include "io/tokens/token_kind.h"
#include "io/tokens/unicode.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using nlohmann::json;

// Reads the fields of a message of protocol buffers (protobuf.dev/programming-guides/encoding).
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  // Reads the next field; returns whether there was one.
  bool next() {
    if (at_ == bytes_.size()) {
      return false;
    }
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    value_ = 0;
    text_ = {};
    switch (tag & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        text_ = take(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5:
        text_ = take(4);
        std::memcpy(&value_, text_.data(), 4);
        break;
      default:
        throw DataError(fmt::format("not a SentencePiece model: byte {} starts no field", at_));
    }
    return true;
  }
  std::uint64_t number() const { return number_; }
  std::uint64_t value() const { return value_; }
  std::string_view text() const { return text_; }
  float number_value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value_)); }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    throw DataError(fmt::format("not a SentencePiece model: a number at byte {} is too long", at_));
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      throw DataError(fmt::format(
          "not a SentencePiece model, or cut off: a field at byte {} goes beyond the end", at_));
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t value_ = 0;
  std::string_view text_;
};

struct Piece {
  std::string text;
  float score = 0;
  TokenKind kind = TokenKind::normal;
};

// The fields of sentencepiece_model.proto that determine ids.
struct Model {
  std::vector<Piece> pieces;
  std::uint64_t type = 1;  // unigram
  bool falls_back = false;
  bool blank_as_suffix = false;
  std::int32_t begin = 1;
  std::int32_t end = 2;
  bool adds_prefix = true;
  bool removes_blanks = true;
  bool escapes_blanks = true;
  std::string rules;       // the name of the normalization
  bool has_rules = false;  // and whether it does anything
};

Piece read_piece(std::string_view bytes) {
  Piece piece;
  for (MessageReader field(bytes); field.next();) {
    switch (field.number()) {
      case 1:
        piece.text = field.text();
        break;
      case 2:
        piece.score = field.number_value();
        break;
      case 3:
        if (field.value() < 1 || field.value() > 6) {
          throw DataError(fmt::format("a piece has the unknown type {}", field.value()));
        }
        piece.kind = static_cast<TokenKind>(field.value());
        break;
      default:
        break;  // extensions
    }
  }
  if (piece.text.empty() || !is_utf8(piece.text) || !std::isfinite(piece.score)) {
    throw DataError("a piece has no valid text or score");
  }
  return piece;
}

void read_trainer(std::string_view bytes, Model& model) {
  for (MessageReader field(bytes); field.next();) {
    switch (field.number()) {
      case 3:
        model.type = field.value();
        break;
      case 24:
        model.blank_as_suffix = field.value() != 0;
        break;
      case 35:
        model.falls_back = field.value() != 0;
        break;
      case 41:
        model.begin = static_cast<std::int32_t>(field.value());
        break;
      case 42:
        model.end = static_cast<std::int32_t>(field.value());
        break;
      default:
        break;  // what the trainer was told
    }
  }
}

void read_normalizer(std::string_view bytes, Model& model) {
  for (MessageReader field(bytes); field.next();) {
    switch (field.number()) {
      case 1:
        model.rules = field.text();
        break;
      case 2:
      case 6:
        model.has_rules = model.has_rules || !field.text().empty();
        break;
      case 3:
        model.adds_prefix = field.value() != 0;
        break;
      case 4:
        model.removes_blanks = field.value() != 0;
        break;
      case 5:
        model.escapes_blanks = field.value() != 0;
        break;
      default:
        throw DataError(
            fmt::format("the normalizer has the unknown field {}, which is refused, because "
                        "ignoring it could change the ids",
                        field.number()));
    }
  }
}

void refuse_if(bool refused, std::string_view what) {
  if (refused) {
    throw DataError(fmt::format("the SentencePiece model {}, which is not supported", what));
  }
}

Model read_model(std::string_view bytes) {
  Model model;
  for (MessageReader field(bytes); field.next();) {
    switch (field.number()) {
      case 1:
        model.pieces.push_back(read_piece(field.text()));
        break;
      case 2:
        read_trainer(field.text(), model);
        break;
      case 3:
        read_normalizer(field.text(), model);
        break;
      case 5:
        for (MessageReader rule(field.text()); rule.next();) {
          refuse_if(rule.number() == 2 && !rule.text().empty(), "has rules for decoded text");
        }
        break;
      default:
        break;  // the self-test
    }
  }
  if (model.pieces.empty()) {
    throw DataError("not a SentencePiece model: it has no pieces");
  }
  refuse_if(model.type != 2, model.type == 1 ? "is of the type unigram" : "is not of the type BPE");
  refuse_if(model.has_rules, "normalizes text (" + model.rules + ")");
  refuse_if(model.removes_blanks, "removes blanks (remove_extra_whitespaces)");
  refuse_if(!model.escapes_blanks, "does not escape blanks (escape_whitespaces)");
  refuse_if(model.blank_as_suffix, "has blanks at the ends of pieces (treat_whitespace_as_suffix)");
  return model;
}

// Returns the pairs of pieces that make a piece. SentencePiece merges the pair whose piece has the
// highest score; the lengths decide among the pairs of one piece, as in Hugging Face's converter.
json merges_of(const Model& model) {
  struct Pair {
    float score;
    std::size_t left;  // characters
    std::size_t right;
    std::string_view a;
    std::string_view b;
  };
  std::unordered_map<std::string_view, std::size_t> ids;
  for (const Piece& piece : model.pieces) {
    if (piece.kind == TokenKind::normal || piece.kind == TokenKind::user_defined) {
      ids.emplace(piece.text, ids.size());
    }
  }
  std::vector<Pair> pairs;
  for (const Piece& piece : model.pieces) {
    const std::string_view text = piece.text;
    std::size_t total = 0;
    for (std::size_t at = 0; at < text.size(); ++total) {
      (void)next_character(text, at);
    }
    // The longest piece in practice has some dozen characters.
    refuse_if(total > 1024, "has a piece of more than 1024 characters");
    std::vector<Pair> own;
    std::size_t left = 0;
    for (std::size_t at = 0; piece.kind == TokenKind::normal && left + 1 < total;) {
      (void)next_character(text, at);
      ++left;
      if (ids.contains(text.substr(0, at)) && ids.contains(text.substr(at))) {
        own.push_back({piece.score, left, total - left, text.substr(0, at), text.substr(at)});
      }
    }
    std::ranges::stable_sort(own, {},
                             [&](const Pair& p) { return std::pair(ids.at(p.a), ids.at(p.b)); });
    pairs.insert(pairs.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(pairs, std::greater<>(),
                           [](const Pair& p) { return std::tuple(p.score, p.left, p.right); });
  json merges = json::array();
  for (const Pair& pair : pairs) {
    merges.push_back(json::array({pair.a, pair.b}));
  }
  return merges;
}

json replace_step(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json decoder_of(const Model& model) {
  json steps = json::array(
      {replace_step(kBlankMark, " "), json{{"type", "ByteFallback"}}, json{{"type", "Fuse"}}});
  if (model.adds_prefix) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}});
  }
  return {{"type", "Sequence"}, {"decoders", steps}};
}

// Returns the text of a piece that the trainer's settings name, or "".
std::string piece_text(const Model& model, std::int32_t id) {
  return id >= 0 && static_cast<std::size_t>(id) < model.pieces.size()
             ? model.pieces[static_cast<std::size_t>(id)].text
             : "";
}

}  // namespace

json sentencepiece_definition(std::string_view bytes, std::string& end_token) {
  const Model model = read_model(bytes);
  json vocab = json::object();
  json added = json::array();
  json unknown;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    if (!vocab.emplace(piece.text, id).second) {
      throw DataError(fmt::format("piece {} occurs twice", id));
    }
    unknown = piece.kind == TokenKind::unknown ? json(piece.text) : unknown;
    const bool special = piece.kind == TokenKind::unknown || piece.kind == TokenKind::control;
    if (special || piece.kind == TokenKind::user_defined) {
      added.push_back({{"id", id},
                       {"content", piece.text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", special}});
    }
  }
  json steps = json::array();
  if (model.adds_prefix) {
    steps.push_back({{"type", "Prepend"}, {"prepend", kBlankMark}});
  }
  steps.push_back(replace_step(" ", kBlankMark));
  json post_processor;
  if (const std::string begin = piece_text(model, model.begin); !begin.empty()) {
    const json special = {{"SpecialToken", {{"id", begin}, {"type_id", 0}}}};
    const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const json named = {{"id", begin},
                        {"ids", json::array({static_cast<std::uint32_t>(model.begin)})},
                        {"tokens", json::array({begin})}};
    post_processor = {{"type", "TemplateProcessing"},
                      {"single", json::array({special, text})},
                      {"pair", json::array({special, text})},
                      {"special_tokens", {{begin, named}}}};
  }
  end_token = piece_text(model, model.end);
  return {{"added_tokens", added},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", steps}}},
          {"post_processor", post_processor},
          {"decoder", decoder_of(model)},
          {"model",
           {{"type", "BPE"},
            {"unk_token", unknown},
            {"fuse_unk", true},
            {"byte_fallback", model.falls_back},
            {"vocab", vocab},
            {"merges", merges_of(model)}}}};
}

}  // namespace trireme
