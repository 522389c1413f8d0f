#include "src/train/text/step_tokenizer.h"

#include <nlohmann/json.hpp>

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/train/saving/first_weights.h"

namespace trireme {
namespace {

// Returns the tokenizer whose files lie in a folder, if they can be read.
std::optional<TokenizerIdentity> tokenizer_in(const std::filesystem::path& folder) {
  try {
    if (holds_tokenizer(folder)) {
      const auto tokenizer = open_tokenizer_files(folder);
      return TokenizerIdentity{tokenizer->name(), tokenizer->vocab(), tokenizer->digest()};
    }
  } catch (const Error&) {
    // It is damaged or of a kind that this program does not have.
  } catch (const std::filesystem::filesystem_error&) {
    // This user may not read it.
  }
  return std::nullopt;
}

TokenizerIdentity recorded_tokenizer(const StepFolder& step) {
  return tokenizer_from_extra(*step.manifest->meta.extra);
}

}  // namespace

std::string tokenizer_digest_in(const std::filesystem::path& folder) {
  return tokenizer_in(folder).value_or(TokenizerIdentity{}).digest;
}

std::optional<TokenizerIdentity> other_tokenizer_of(const StepFolder& step,
                                                    const TokenizerIdentity& data) {
  if (data.digest.empty()) {
    return std::nullopt;
  }
  std::optional<TokenizerIdentity> own = recorded_tokenizer(step);
  if (own->digest.empty()) {
    own = is_of_other_program(data) ? std::nullopt : tokenizer_in(step.path);
  }
  return own && own->digest != data.digest ? own : std::nullopt;
}

bool changed_tokenizer(const StepFolder& step, const StepFolder* base) {
  const TokenizerIdentity own = recorded_tokenizer(step);
  if (base != nullptr) {
    return other_tokenizer_of(*base, own) || changed_tokenizer(*base, nullptr);
  }
  if (own.digest.empty() || is_of_other_program(own)) {
    return false;
  }
  const std::optional<FirstWeights> first = find_first_weights(step);
  if (!first) {
    return false;
  }
  const std::string digest = first->tokenizer_digest ? *first->tokenizer_digest
                             : first->is_there       ? tokenizer_digest_in(first->folder)
                                                     : "";
  return !digest.empty() && digest != own.digest;
}

std::string warning_of_tokenizer(const StepFolder& base, const TokenizerIdentity& data) {
  const std::optional<TokenizerIdentity> other = other_tokenizer_of(base, data);
  return !other ? ""
                : fmt::format(
                      "checkpoint.init_from: {} has the tokenizer {}, but data.train has tokens of "
                      "{}: the same ids stand for other texts, or another token ends a document. "
                      "Unless the model is to learn a new tokenizer, pack the data with the "
                      "model's own",
                      base.path.string(), describe(*other), describe(data));
}

void check_tokenizer_of_teacher(const StepFolder& teacher, const TokenizerIdentity& data) {
  if (const std::optional<TokenizerIdentity> other = other_tokenizer_of(teacher, data)) {
    throw ConfigError(fmt::format(
        "distill.teacher: {} has the tokenizer {}, but data.train has tokens of {}: the same ids "
        "stand for other texts; pack the data with the teacher's tokenizer",
        teacher.path.string(), describe(*other), describe(data)));
  }
}

}  // namespace trireme
