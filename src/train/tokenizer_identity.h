// TokenizerIdentity: which tokenizer made the tokens of a dataset, or those that a model was
// trained on. Token ids of one tokenizer mean nothing to a model of another. A value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/data/dataset_manifest.h"
#include "io/data/tokenizer.h"

namespace trireme {

struct TokenizerIdentity {
  std::string name;
  std::int64_t vocab = 0;  // 0: unknown
  std::string digest;      // empty: unknown
};

TokenizerIdentity tokenizer_of(const DatasetManifest& manifest);

// In the part of a checkpoint's manifest that is free for the run. Checkpoints of older versions
// hold the name alone.
void put_tokenizer(const TokenizerIdentity& tokenizer, nlohmann::json& extra);
TokenizerIdentity tokenizer_from_extra(const nlohmann::json& extra);

// By digest; by name where a digest is unknown.
bool same_tokenizer(const TokenizerIdentity& a, const TokenizerIdentity& b);
// "'gpt2' (50257 ids, 0123456789ab)"
std::string describe(const TokenizerIdentity& tokenizer);

// Encodes and decodes for a model. ids: texts are token ids in decimal, as "464 3290", whatever the
// tokenizer is. ConfigError if the tokenizer is none of this program's and ids is false.
std::unique_ptr<Tokenizer> tokenizer_for(const TokenizerIdentity& tokenizer, std::int64_t vocab,
                                         bool ids);

}  // namespace trireme
