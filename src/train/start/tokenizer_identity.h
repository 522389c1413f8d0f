// TokenizerIdentity says which tokenizer made the tokens of a dataset, or those on which a model
// was trained. Token ids of one tokenizer are meaningless to a model trained with another. A plain
// value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/data/dataset_manifest.h"
#include "io/data/tokenizer.h"

namespace trireme {

struct TokenizerIdentity {
  std::string name;
  std::int64_t vocab = 0;  // 0 means unknown
  std::string digest;      // empty means unknown
};

TokenizerIdentity tokenizer_of(const DatasetManifest& manifest);

// Write to, and read from, the `extra` part of a checkpoint's manifest. Checkpoints of older
// versions contain only the name.
void put_tokenizer(const TokenizerIdentity& tokenizer, nlohmann::json& extra);
// Adds where the files of a tokenizer lie that this program does not have: in the dataset's folder.
inline constexpr const char* kTokenizerFolderField = "tokenizer_folder";
void put_tokenizer_folder(const TokenizerIdentity& tokenizer, const std::filesystem::path& dataset,
                          nlohmann::json& extra);
TokenizerIdentity tokenizer_from_extra(const nlohmann::json& extra);

// Throws DataError if the tokenizer of a checkpoint cannot be that of its model, which has `vocab`
// token ids, or contradicts this program's tokenizer of the same digest.
void check_tokenizer(const TokenizerIdentity& tokenizer, std::int64_t vocab);

// Compares the digests, or the names if a digest is unknown.
bool same_tokenizer(const TokenizerIdentity& a, const TokenizerIdentity& b);
// Returns whether an import knew nothing of the tokenizer.
bool is_unnamed(const TokenizerIdentity& tokenizer);
// Returns whether another program made the tokens, so that the digest is that of a name alone.
bool is_of_other_program(const TokenizerIdentity& tokenizer);
// Returns whether the program has it.
bool has_tokenizer(const TokenizerIdentity& tokenizer);
// Returns "'gpt2' (50257 ids, 0123456789ab)".
std::string describe(const TokenizerIdentity& tokenizer);

// Returns a tokenizer that encodes and decodes for a model. If `ids`, its texts are token ids in
// decimal, such as "464 3290", whatever the model's tokenizer is. Otherwise throws ConfigError if
// the program does not have the tokenizer; way_out: what to do then, for the message.
std::unique_ptr<Tokenizer> tokenizer_for(const TokenizerIdentity& tokenizer, std::int64_t vocab,
                                         bool ids, const std::string& way_out);

}  // namespace trireme
