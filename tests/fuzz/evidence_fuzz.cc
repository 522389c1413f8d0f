// Reads any bytes as an audit log, an envelope, a statement, a bundle of statements, the signature
// of a model, its statement, a certificate of deletion, a trust file, base64, a URI, the head of a
// log and a list of digests. The lines of an audit log also fill a record of what it says.
#include "src/base/base64.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/bundle.h"
#include "src/evidence/certificate.h"
#include "src/evidence/digest_list.h"
#include "src/evidence/model_signature.h"
#include "src/lineage/audit_record.h"
#include "src/lineage/energy_fact.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// Returns a bundle with this statement, which nobody has signed.
std::string model_bundle(std::string_view statement) {
  using namespace trireme;
  const Envelope envelope =
      make_envelope(std::string(kStatementType), std::string(statement), nullptr);
  return R"({"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":)" +
         to_text(envelope) + "}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  static const SigningKey key(SigningKey::Seed{1, 2, 3});
  AuditRecord record({"/run/checkpoints"}, [](const std::string& stated) { return stated; });
  AuditDemands demands = {{{key.public_key(), "fuzz"}}, {AuditHead{1}}};
  demands.event = [&](std::int64_t line, const auto& event) { record.take("log", line, event); };
  const AuditCheck check = check_audit_text(text, demands);
  require(check.signed_lines <= check.lines && !check.faults.empty());  // no log has AuditHead{1}
  const MemoryFile file(text);
  const AuditCheck of_file = check_audit_log(file.path(), demands);
  require(of_file.head == check.head && of_file.faults.size() == check.faults.size());
  (void)check_audit_end(file.path(), demands);
  (void)begins_as_head(text);
  refuses_only_with<DataError>([&] {
    const Envelope envelope = parse_envelope(text, "input");
    (void)find_signature(envelope, demands.trusted);
    require(to_text(parse_envelope(to_text(envelope), "text")) == to_text(envelope));
  });
  refuses_only_with<DataError>([&] {
    const Provenance provenance = parse_statement(text);
    (void)energy_fact(provenance);
    const std::string statement = statement_text(provenance);
    require(statement_text(parse_statement(statement)) == statement);
  });
  refuses_only_with<DataError>([&] {
    const SignedErasure made = parse_certificate(text, "input", demands.trusted);
    const Erasure again =
        parse_certificate(certificate_text(made.erasure, key), "text", demands.trusted).erasure;
    require(again.files.size() == made.erasure.files.size() && again.uri == made.erasure.uri);
  });
  refuses_only_with<DataError>([&] {
    std::string lines;
    const std::vector<SignedStatement> statements = parse_bundle(text, "input", demands.trusted);
    (void)energy_with_ancestors(statements);
    for (const SignedStatement& each : statements) {
      lines += each.line + "\n";
    }
    require(lines == text);
  });
  static const SigningKey signer = SigningKey::generate(PublicKey::Kind::ecdsa_p256);
  const std::vector<TrustedKey> signers = {{signer.public_key(), "fuzz"}};
  const auto reads_as_model = [&](std::string_view bundle) {
    refuses_only_with<DataError>([&] {
      const ModelStatement made = parse_model_signature(bundle, "input", signers).statement;
      const ModelStatement again =
          parse_model_signature(model_signature_text(made, signer), "text", signers).statement;
      require(again.files.size() == made.files.size() && again.step == made.step);
    });
  };
  reads_as_model(text);
  reads_as_model(model_bundle(text));
  require(path_of_uri(file_uri("/" + std::string(text))) ==
          (text.find('\0') == std::string_view::npos ? "/" + std::string(text) : ""));
  (void)path_of_uri(text);
  refuses_only_with<ConfigError>([&] {
    refuses_only_with<DataError>([&] {
      for (const TrustedKey& trusted : parse_trusted_keys(text, "input")) {
        require(parse_trusted_keys(trusted.key.to_pem(), "text")[0].key.id() == trusted.key.id());
      }
    });
  });
  refuses_only_with<DataError>([&] {
    const std::string decoded = from_base64(text);
    require(from_base64(to_base64(decoded)) == decoded);
  });
  refuses_only_with<DataError>([&] {
    std::string lines;
    for (const ListedFile& each : parse_digest_list(text, "input")) {
      lines += each.sha256 + "  " + each.name + "\n";
    }
    require(lines == text);
  });
  refuses_only_with<ConfigError>([&] { require(to_text(parse_audit_head(text)).size() > 64); });
  return 0;
}
