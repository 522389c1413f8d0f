#include "io/data/split_check.h"

#include <algorithm>
#include <cmath>

#include "io/data/pack_plan.h"
#include "io/data/text_packing.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Span holds the lowest and the highest position of a document.
struct Span {
  double first = 1;
  double last = 0;
  std::int64_t documents = 0;
};

// Returns the fraction with the fewest digits that gives both sides a document. It is near the
// highest position if the requested fraction lies above that, and else near the lowest.
std::string fraction_within(const Span& span, double asked) {
  for (int digits = 1; digits < 16; ++digits) {
    const double scale = std::pow(10, digits);
    const double fraction = asked > span.last ? std::floor(span.last * scale) / scale
                                              : (std::floor(span.first * scale) + 1) / scale;
    if (span.first < fraction && fraction <= span.last) {
      return fmt::format("{:.{}f}", fraction, digits);
    }
  }
  return fmt::format("{}", span.last);
}

std::string message(const Span& span, double fraction) {
  constexpr const char* kDocuments =
      "a text file is one document; .jsonl files hold one document per line";
  const bool all_in_train = span.first >= fraction;
  if (span.documents == 1) {
    return fmt::format(
        "--validation-fraction {}: the inputs contain only one document, which cannot be split "
        "({})",
        fraction, kDocuments);
  }
  return fmt::format(
      "--validation-fraction {}: all {} documents would go to {} and none to {}. With "
      "--validation-fraction {}, both get at least one ({})",
      fraction, span.documents, all_in_train ? "train" : "validation",
      all_in_train ? "validation" : "train", fraction_within(span, fraction), kDocuments);
}

}  // namespace

void check_split(const std::vector<InputFile>& files, double validation_fraction) {
  Span span;
  for (const InputFile& file : files) {
    if (file.bytes == 0) {
      continue;
    }
    if (file.is_jsonl() || file.is_archive()) {
      return;
    }
    if (looks_binary(file)) {
      continue;
    }
    const double position = Selection::position(file.name_of_text(), 0);
    span = {std::min(span.first, position), std::max(span.last, position), span.documents + 1};
    if (span.first < validation_fraction && span.last >= validation_fraction) {
      return;
    }
  }
  if (span.documents > 0) {  // if there is no text at all, the pack itself reports it
    throw ConfigError(message(span, validation_fraction));
  }
}

}  // namespace trireme
