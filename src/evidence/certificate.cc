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

constexpr std::string_view kErasureType = "urn:trireme:erasure:1";

std::string statement_of(const Erasure& erasure) {
  const ordered_json predicate = {
      {"kind", erasure.kind},
      {"uri", erasure.uri},
      {"bytes", erasure.bytes},
      {"method", {{"keys", erasure.keys}, {"overwritten", erasure.overwritten}, {"removed", true}}},
      {"reason", erasure.reason},
      {"host", erasure.host},
      {"uid", erasure.uid},
      {"program", erasure.program},
      {"started", erasure.started},
      {"finished", erasure.finished}};
  const ordered_json statement = {{"_type", kStatementForm},
                                  {"subject", subjects_json(erasure.files)},
                                  {"predicateType", kErasureType},
                                  {"predicate", predicate}};
  return statement.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Erasure parse_erasure(std::string_view text) {
  const json statement = parse_json(text);
  Erasure erasure;
  erasure.files = parse_subjects(statement, kErasureType);
  const json& predicate = object_field(statement, "predicate");
  erasure.kind = text_field(predicate, "kind");
  erasure.uri = text_field(predicate, "uri");
  erasure.bytes = count_field(predicate, "bytes");
  const json& method = object_field(predicate, "method");
  for (const json& each : array_field(method, "keys")) {
    if (!each.is_string()) {
      throw DataError("field 'keys': expected texts");
    }
    erasure.keys.push_back(each.get<std::string>());
  }
  erasure.overwritten = flag_field(method, "overwritten");
  if (!flag_field(method, "removed")) {
    throw DataError("it does not say that the files were removed");
  }
  erasure.reason = text_field(predicate, "reason");
  erasure.host = text_field(predicate, "host");
  erasure.uid = count_field(predicate, "uid", 0, std::numeric_limits<std::uint32_t>::max());
  erasure.program = text_field(predicate, "program");
  erasure.started = text_field(predicate, "started");
  erasure.finished = text_field(predicate, "finished");
  return erasure;
}

}  // namespace

std::string certificate_text(const Erasure& erasure, const SigningKey& key) {
  return to_text(make_envelope(std::string(kStatementType), statement_of(erasure), &key));
}

SignedErasure parse_certificate(std::string_view text, const std::string& origin,
                                const std::vector<TrustedKey>& trusted) {
  const Envelope envelope = parse_envelope(text, origin);
  try {
    if (to_text(envelope) != text) {
      throw DataError("it is not written as Trireme writes it, so it was edited");
    }
    if (envelope.payload_type != kStatementType) {
      throw DataError(fmt::format("its payload has the type '{}', not '{}'",
                                  printable(envelope.payload_type), kStatementType));
    }
    SignedErasure made{parse_erasure(envelope.payload), find_signature(envelope, trusted)};
    if (!made.signature.are_named) {
      throw DataError(
          fmt::format("its keyid was edited: {} has signed it, but it names another key",
                      made.signature.signer()));
    }
    return made;
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}: not a certificate of deletion", origin), error);
  }
}

}  // namespace trireme
