#include "src/evidence/bundle.h"

#include <algorithm>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

SignedStatement parse_line(std::string_view line, const std::vector<TrustedKey>& trusted) {
  const Envelope envelope = parse_envelope(line, "this line");
  if (to_text(envelope) != fmt::format("{}\n", line)) {
    throw DataError("it is not written as Trireme writes it, so it was edited");
  }
  if (envelope.payload_type != kStatementType) {
    throw DataError(fmt::format("its payload has the type '{}', not '{}'",
                                printable(envelope.payload_type), kStatementType));
  }
  SignedStatement statement{
      std::string(line), parse_statement(envelope.payload), find_signature(envelope, trusted), {}};
  const SignatureFinding& signature = statement.signature;
  if (!signature.are_named) {
    throw DataError(fmt::format("its keyid was edited: {} has signed it, but it names another key",
                                signature.signer()));
  }
  for (const EnvelopeSignature& each : envelope.signatures) {
    const auto& ids = signature.key_ids;
    if (!ids.empty() && std::find(ids.begin(), ids.end(), each.key_id) == ids.end()) {
      statement.other_signers.push_back(printable(each.key_id));
    }
  }
  return statement;
}

// Returns whether `next` is about the checkpoint that `child` names as its parent.
bool continues(const Provenance& child, const Provenance& next) {
  const Material* const parent = child.find("parent");
  const Subject* const manifest = next.find_subject(kManifestSubject);
  return parent != nullptr && manifest != nullptr && !parent->sha256.empty() &&
         parent->sha256 == manifest->sha256;
}

}  // namespace

std::vector<SignedStatement> parse_bundle(std::string_view text, const std::string& origin,
                                          const std::vector<TrustedKey>& trusted) {
  std::vector<SignedStatement> statements;
  if (text.empty()) {
    throw DataError(fmt::format("{} is empty", origin));
  }
  while (!text.empty()) {
    const std::size_t number = statements.size() + 1;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      throw DataError(fmt::format("{} ends within line {}: it was cut", origin, number));
    }
    if (number > kMostAncestors + 1) {
      throw DataError(
          fmt::format("{} has more than {} lines: lines were added", origin, kMostAncestors + 1));
    }
    try {
      statements.push_back(parse_line(text.substr(0, end), trusted));
    } catch (const DataError& error) {
      throw data_error_in(fmt::format("{}, line {}", origin, number), error);
    }
    if (number > 1 && !continues(statements[number - 2].provenance, statements.back().provenance)) {
      throw DataError(fmt::format("{}: line {} is not about the parent of line {}", origin, number,
                                  number - 1));
    }
    text.remove_prefix(end + 1);
  }
  return statements;
}

std::string_view kept_ancestors(std::string_view parent_bundle) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < kMostAncestors && end < parent_bundle.size(); ++lines) {
    const std::size_t next = std::min(parent_bundle.find('\n', end), parent_bundle.size() - 1) + 1;
    if (static_cast<std::int64_t>(next) > kMostAncestorBytes) {
      break;
    }
    end = next;
  }
  return parent_bundle.substr(0, end);
}

std::string bundle_text(const Envelope& envelope, std::string_view ancestors) {
  return to_text(envelope) + std::string(ancestors);
}

}  // namespace trireme
