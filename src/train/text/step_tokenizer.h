// Compares the tokenizers of checkpoints. The manifest of a step says from whose tokens it has
// learned; for an imported model, the files beside it say so. A run may begin with the weights of a
// model and learn the tokens of another tokenizer: what the first model's files say of texts then
// no longer holds. Tokens of other programs (`data convert`) have a digest that is that of no
// files, and are not compared with files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint/store.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {

// Returns the digest of the tokenizer whose files lie in a folder; "" if it has none, or one that
// cannot be read.
std::string tokenizer_digest_in(const std::filesystem::path& folder);

// Returns the tokenizer of a step if it is known not to be `data`.
std::optional<TokenizerIdentity> other_tokenizer_of(const StepFolder& step,
                                                    const TokenizerIdentity& data);

// Returns whether a step has learned the tokens of another tokenizer than the model with whose
// weights its run, or an earlier one, began. base: that of a step that needs one (needs_base), or
// null. Throws DataError for a malformed record.
bool changed_tokenizer(const StepFolder& step, const StepFolder* base);

// Returns what to warn of if a run takes the weights of `base` and learns tokens of `data`, or "".
std::string warning_of_tokenizer(const StepFolder& base, const TokenizerIdentity& data);
// Throws ConfigError if the ids of a teacher stand for other texts than those of the run's data.
void check_tokenizer_of_teacher(const StepFolder& teacher, const TokenizerIdentity& data);

}  // namespace trireme
