// Reads any bytes as the files that define a tokenizer: tokenizer.json, vocab.json with merges.txt,
// a model of SentencePiece, and the files beside these that add tokens. Each may be refused with a
// DataError. A tokenizer that is accepted encodes the input itself to ids of its vocabulary, and
// decodes them; a GGUF file can hold it, or says why not.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/tokens/added_token_files.h"
#include "io/tokens/bpe_tokenizer.h"
#include "io/tokens/sentencepiece.h"
#include "io/tokens/template_options.h"
#include "io/tokens/tokenizer_files.h"
#include "io/tokens/unicode.h"
#include "io/tokens/vocabulary_files.h"
#include "src/base/json_fields.h"
#include "src/interchange/gguf_vocabulary.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void use(const nlohmann::json& definition, std::string_view text) {
  const trireme::BpeTokenizer tokenizer(definition, "");
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  for (const std::int32_t id : ids) {
    trireme::require(id >= 0 && id < tokenizer.vocab());
  }
  trireme::require(trireme::is_utf8(tokenizer.decode(ids)));
  trireme::TokenizerFiles files;
  files.definition = definition;
  const auto vocabulary = trireme::gguf_vocabulary(files, tokenizer.vocab() + 2);
  trireme::require(vocabulary.missing.empty() != vocabulary.summary.empty());
}

// Returns what a small SentencePiece model defines.
nlohmann::json small_definition() {
  return nlohmann::json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "Prepend", "prepend": "\u2581"},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false,
              "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u2581": 4},
              "merges": [["a", "b"]]}})");
}

// text: a list of tokenizer_config.json, added_tokens.json and special_tokens_map.json.
trireme::AddedTokenFiles three_files(std::string_view text) {
  const nlohmann::json files = trireme::parse_json(text);
  if (!files.is_array() || files.size() != 3) {
    throw trireme::DataError("it is not a list of three files");
  }
  return {files[0], files[1], files[2]};
}

// text: vocab.json, a zero byte, and merges.txt; or, after another zero byte, also a list for
// three_files().
void use_vocabulary(std::string_view text) {
  const std::size_t cut = text.find('\0');
  const std::size_t end = std::min(text.find('\0', cut + 1), text.size());
  const std::string_view vocab = text.substr(0, cut);
  const std::string_view merges = text.substr(cut + 1, end - cut - 1);
  if (end == text.size()) {
    return use(trireme::vocabulary_definition(vocab, merges), text);
  }
  const trireme::AddedTokenFiles files = three_files(text.substr(end + 1));
  nlohmann::json definition = trireme::vocabulary_definition(vocab, merges, files.config);
  std::string end_token;
  trireme::add_tokens_of_files(files, definition, end_token);
  trireme::add_named_tokens(files, definition, end_token);
  trireme::follow_template_options(files.config, trireme::TokenizerForm::vocabulary, definition);
  use(definition, text);
}

void use_added(std::string_view text) {
  nlohmann::json definition = small_definition();
  std::string end_token;
  const trireme::AddedTokenFiles files = three_files(text);
  trireme::add_tokens_of_files(files, definition, end_token);
  trireme::follow_template_options(files.config, trireme::TokenizerForm::sentencepiece, definition);
  use(definition, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  const std::size_t cut = text.find('\0');
  if (text.starts_with('[')) {
    refuses_only_with<DataError>([&] { use_added(text); });
  } else if (!text.starts_with('{')) {
    refuses_only_with<DataError>([&] {
      std::string end_token;
      use(sentencepiece_definition(text, end_token), text);
    });
  } else if (cut == std::string_view::npos) {
    refuses_only_with<DataError>([&] { use(parse_json(text), text); });
  } else {
    refuses_only_with<DataError>([&] { use_vocabulary(text); });
  }
  return 0;
}
