#include "src/evidence/certificate.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/evidence/subject_json.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// What distinguishes a certificate from a draft.
struct ErasureForm {
  std::string_view type;
  std::string_view name;
  bool is_removed;
};
constexpr ErasureForm kCertificate{"urn:trireme:erasure:1", "certificate of deletion", true};
constexpr ErasureForm kDraft{"urn:trireme:erasure-draft:1", "draft of a certificate of deletion",
                             false};

ordered_json method_json(const Erasure& erasure, const ErasureForm& form) {
  ordered_json method = {{"keys", erasure.keys}};
  if (!erasure.missing_keys.empty()) {
    method["missing_keys"] = erasure.missing_keys;
  }
  method["overwritten"] = erasure.overwritten;
  if (!erasure.gone_before.empty()) {
    method["gone_before"] = erasure.gone_before;
  }
  method["removed"] = form.is_removed;
  return method;
}

std::string statement_of(const Erasure& erasure, const ErasureForm& form) {
  const ordered_json predicate = {
      {"kind", erasure.kind},       {"uri", erasure.uri},
      {"bytes", erasure.bytes},     {"method", method_json(erasure, form)},
      {"reason", erasure.reason},   {"host", erasure.host},
      {"uid", erasure.uid},         {"program", erasure.program},
      {"started", erasure.started}, {"finished", erasure.finished}};
  const ordered_json statement = {{"_type", kStatementForm},
                                  {"subject", subjects_json(erasure.files)},
                                  {"predicateType", form.type},
                                  {"predicate", predicate}};
  return statement.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<std::string> parse_names(const json& method, const char* name) {
  std::vector<std::string> names;
  for (const json& each : array_field(method, name)) {
    if (!each.is_string()) {
      throw DataError(fmt::format("field '{}': expected texts", name));
    }
    names.push_back(each.get<std::string>());
  }
  return names;
}

Erasure parse_erasure(std::string_view text, const ErasureForm& form) {
  const json statement = parse_json(text);
  Erasure erasure;
  erasure.files = parse_subjects(statement, form.type);
  const json& predicate = object_field(statement, "predicate");
  erasure.kind = text_field(predicate, "kind");
  erasure.uri = text_field(predicate, "uri");
  erasure.bytes = count_field(predicate, "bytes");
  const json& method = object_field(predicate, "method");
  erasure.keys = parse_names(method, "keys");
  if (method.contains("missing_keys")) {
    erasure.missing_keys = parse_names(method, "missing_keys");
  }
  if (method.contains("gone_before")) {
    erasure.gone_before = parse_names(method, "gone_before");
  }
  erasure.overwritten = flag_field(method, "overwritten");
  if (flag_field(method, "removed") != form.is_removed) {
    throw DataError(
        fmt::format("it says that the files were {}removed", form.is_removed ? "not " : ""));
  }
  erasure.reason = text_field(predicate, "reason");
  erasure.host = text_field(predicate, "host");
  erasure.uid = count_field(predicate, "uid", 0, std::numeric_limits<std::uint32_t>::max());
  erasure.program = text_field(predicate, "program");
  erasure.started = text_field(predicate, "started");
  erasure.finished = text_field(predicate, "finished");
  return erasure;
}

std::string signed_text(const Erasure& erasure, const ErasureForm& form, const SigningKey* key) {
  return to_text(make_envelope(std::string(kStatementType), statement_of(erasure, form), key));
}

SignedErasure parse_signed(std::string_view text, const std::string& origin,
                           const std::vector<TrustedKey>& trusted, const ErasureForm& form) {
  const Envelope envelope = parse_envelope(text, origin);
  try {
    if (to_text(envelope) != text) {
      throw DataError("it is not written as Trireme writes it, so it was edited");
    }
    if (envelope.payload_type != kStatementType) {
      throw DataError(fmt::format("its payload has the type '{}', not '{}'",
                                  printable(envelope.payload_type), kStatementType));
    }
    SignedErasure made{parse_erasure(envelope.payload, form), find_signature(envelope, trusted)};
    if (!made.signature.are_named) {
      throw DataError(
          fmt::format("its keyid was edited: {} has signed it, but it names another key",
                      made.signature.signer()));
    }
    return made;
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}: not a {}", origin, form.name), error);
  }
}

}  // namespace

std::string certificate_text(const Erasure& erasure, const SigningKey& key) {
  return signed_text(erasure, kCertificate, &key);
}

std::string draft_text(const Erasure& erasure, const SigningKey& key) {
  return signed_text(erasure, kDraft, &key);
}

std::int64_t most_certificate_bytes(const Erasure& erasure) {
  constexpr std::int64_t kMostForSignatureAndTexts = 8192;  // also of another host, user, version
  Erasure most = erasure;
  most.gone_before.clear();
  for (const Subject& file : erasure.files) {
    most.gone_before.push_back(file.name);
  }
  return std::ssize(signed_text(most, kCertificate, nullptr)) + kMostForSignatureAndTexts;
}

SignedErasure parse_certificate(std::string_view text, const std::string& origin,
                                const std::vector<TrustedKey>& trusted) {
  return parse_signed(text, origin, trusted, kCertificate);
}

SignedErasure parse_draft(std::string_view text, const std::string& origin,
                          const std::vector<TrustedKey>& trusted) {
  return parse_signed(text, origin, trusted, kDraft);
}

}  // namespace trireme
