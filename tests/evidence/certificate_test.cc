#include "src/evidence/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

const SigningKey kCertifier{SigningKey::Seed{1, 2, 3}};
const SigningKey kOtherCertifier{SigningKey::Seed{4, 5, 6}};
const std::vector<TrustedKey> kCertifiers = {{kCertifier.public_key(), "Site A"}};

Erasure sample_erasure() {
  Erasure erasure;
  erasure.kind = "checkpoint";
  erasure.uri = "file:///runs/a/checkpoints/step-00000100";
  erasure.files = {{"keys.json", std::string(64, 'a')}, {"manifest.json", std::string(64, 'b')}};
  erasure.bytes = 12345;
  erasure.keys = {"keys.json"};
  erasure.overwritten = true;
  erasure.reason = "the retention period is over";
  erasure.host = "n1";
  erasure.uid = 1000;
  erasure.program = "trireme 1";
  erasure.started = "2026-11-26T12:00:00Z";
  erasure.finished = "2026-11-26T12:00:01Z";
  return erasure;
}

SignedErasure parsed_certificate(const std::string& text) {
  return parse_certificate(text, "a.json", kCertifiers);
}

std::string envelope_payload(const std::string& text) {
  return parse_envelope(text, "a.json").payload;
}

TEST(Certificate, ComesBackWithItsSigner) {
  const SignedErasure made = parsed_certificate(certificate_text(sample_erasure(), kCertifier));
  EXPECT_EQ(made.signature.state, SignatureState::trusted);
  EXPECT_THAT(made.signature.signer(), HasSubstr("Site A (key "));
  const Erasure wanted = sample_erasure();
  const Erasure& found = made.erasure;
  EXPECT_EQ(found.kind, wanted.kind);
  EXPECT_EQ(found.uri, wanted.uri);
  EXPECT_EQ(found.bytes, wanted.bytes);
  EXPECT_EQ(found.keys, wanted.keys);
  EXPECT_TRUE(found.overwritten);
  EXPECT_EQ(found.reason, wanted.reason);
  EXPECT_EQ(found.host, wanted.host);
  EXPECT_EQ(found.uid, wanted.uid);
  EXPECT_EQ(found.program, wanted.program);
  EXPECT_EQ(found.started, wanted.started);
  EXPECT_EQ(found.finished, wanted.finished);
  ASSERT_EQ(found.files.size(), 2U);
  EXPECT_EQ(found.files[1].name, "manifest.json");
  EXPECT_EQ(found.files[1].sha256, std::string(64, 'b'));
}

TEST(Certificate, SaysWhichKeysWereMissingAndWhatWasGone) {
  Erasure wanted = sample_erasure();
  EXPECT_EQ(envelope_payload(certificate_text(wanted, kCertifier)).find("missing_keys"),
            std::string::npos)
      << "lists that are empty are left out";
  wanted.missing_keys = {"a/keys.json"};
  wanted.gone_before = {"keys.json", "manifest.json"};
  const Erasure found = parsed_certificate(certificate_text(wanted, kCertifier)).erasure;
  EXPECT_EQ(found.missing_keys, wanted.missing_keys);
  EXPECT_EQ(found.gone_before, wanted.gone_before);
  EXPECT_LE(std::ssize(certificate_text(wanted, kCertifier)),
            most_certificate_bytes(sample_erasure()));
}

TEST(Certificate, IsNoDraftAndADraftIsNoCertificate) {
  const std::string draft = draft_text(sample_erasure(), kCertifier);
  EXPECT_EQ(parse_draft(draft, "a.json", kCertifiers).erasure.uri, sample_erasure().uri);
  EXPECT_THROW(parsed_certificate(draft), DataError);
  const std::string certificate = certificate_text(sample_erasure(), kCertifier);
  EXPECT_THROW(parse_draft(certificate, "a.json", kCertifiers), DataError);
}

TEST(Certificate, OfAnotherKeyIsNotTrusted) {
  EXPECT_EQ(parsed_certificate(certificate_text(sample_erasure(), kOtherCertifier)).signature.state,
            SignatureState::untrusted);
}

// Whatever byte is changed: the certificate is refused, or no trusted key has signed it.
TEST(Certificate, EveryChangedByteIsFound) {
  const std::string text = certificate_text(sample_erasure(), kCertifier);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    try {
      EXPECT_NE(parsed_certificate(changed).signature.state, SignatureState::trusted) << at;
    } catch (const DataError&) {
      continue;
    }
  }
  EXPECT_THROW(parsed_certificate(text + text), DataError);
  EXPECT_THROW(parsed_certificate(text.substr(0, text.size() - 1)), DataError);
  EXPECT_THROW(parsed_certificate(""), DataError);
}

TEST(Certificate, IsNoProvenanceAndProvenanceIsNoCertificate) {
  Provenance provenance;
  provenance.subjects = sample_erasure().files;
  const std::string text =
      to_text(make_envelope(std::string(kStatementType), statement_text(provenance), &kCertifier));
  EXPECT_THAT(message_of<DataError>([&] { (void)parsed_certificate(text); }),
              HasSubstr("a.json: not a certificate of deletion: not an in-toto statement with "
                        "urn:trireme:erasure:1"));
  const Envelope certificate =
      parse_envelope(certificate_text(sample_erasure(), kCertifier), "a.json");
  EXPECT_THROW((void)parse_statement(certificate.payload), DataError);
}

TEST(Certificate, NamesNoFileOutsideItsFolder) {
  Erasure erasure = sample_erasure();
  erasure.files[0].name = "../secret";
  EXPECT_THAT(message_of<DataError>(
                  [&] { (void)parsed_certificate(certificate_text(erasure, kCertifier)); }),
              HasSubstr("not the name of a file in this folder"));
  erasure.files.clear();
  EXPECT_THROW((void)parsed_certificate(certificate_text(erasure, kCertifier)), DataError);
}

}  // namespace
}  // namespace trireme
