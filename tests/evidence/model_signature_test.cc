#include "src/evidence/model_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/base64.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

const SigningKey kModelSigner = SigningKey::generate(PublicKey::Kind::ecdsa_p256);
const std::vector<TrustedKey> kModelTrust = {{kModelSigner.public_key(), "Site A"}};
const std::filesystem::path kForeignModel = MODEL_GOLDEN_PATH;

ModelStatement sample_model() {
  ModelStatement model;
  model.name = "first";
  model.files = {{"more/weights.bin", sha256_hex("weights")},
                 {"more-notes.txt", sha256_hex("notes")},
                 {"config.json", sha256_hex("config")}};
  model.checkpoint = sha256_hex("manifest");
  model.step = 7;
  model.finished = "2026-11-27T12:00:00Z";
  return model;
}

SignedModel parsed_model(const std::string& text) {
  return parse_model_signature(text, "m/model.sig", kModelTrust);
}

// Returns the text with a changed statement, signed by the right key.
std::string with_statement(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json bundle = nlohmann::json::parse(model_signature_text(sample_model(), kModelSigner));
  nlohmann::json statement =
      nlohmann::json::parse(from_base64(bundle["dsseEnvelope"]["payload"].get<std::string>()));
  change(statement);
  const Envelope envelope =
      make_envelope(std::string(kStatementType), statement.dump(), &kModelSigner);
  bundle["dsseEnvelope"] = nlohmann::json::parse(to_text(envelope));
  return bundle.dump();
}

TEST(ModelSignature, ComesBackWithItsSigner) {
  const SignedModel made = parsed_model(model_signature_text(sample_model(), kModelSigner));
  EXPECT_EQ(made.signature.state, SignatureState::trusted);
  EXPECT_THAT(made.signature.signer(), HasSubstr("Site A (key "));
  EXPECT_EQ(made.statement.name, "first");
  EXPECT_EQ(made.statement.checkpoint, sha256_hex("manifest"));
  EXPECT_EQ(made.statement.step, 7);
  EXPECT_EQ(made.statement.finished, "2026-11-27T12:00:00Z");
  ASSERT_EQ(made.statement.files.size(), 3U);
  EXPECT_EQ(made.statement.files[0].name, "config.json");
  EXPECT_EQ(made.statement.files[1].name, "more/weights.bin");
  EXPECT_EQ(made.statement.files[2].name, "more-notes.txt");
  EXPECT_EQ(made.statement.files[2].sha256, sha256_hex("notes"));
}

// tests/evidence/check_models.py has made it.
TEST(ModelSignature, OfModelSigningIsRead) {
  const std::string text = read_file(kForeignModel / "model" / kModelSignatureName);
  const std::vector<TrustedKey> trusted = load_trusted_keys(kForeignModel / "model.pub");
  const SignedModel made = parse_model_signature(text, "model.sig", trusted);
  EXPECT_EQ(made.signature.state, SignatureState::trusted);
  ASSERT_EQ(made.statement.files.size(), 3U);
  for (const Subject& file : made.statement.files) {
    EXPECT_EQ(file.sha256, sha256_hex(read_file(kForeignModel / "model" / file.name)));
  }
  EXPECT_THAT(made.statement.ignored, testing::Contains(kModelSignatureName));
  EXPECT_EQ(parsed_model(text).signature.state, SignatureState::untrusted);
}

TEST(ModelSignature, NamesItsKeyAsModelSigningDoes) {
  const auto hint = [](const std::string& text) {
    return nlohmann::json::parse(text)["verificationMaterial"]["publicKey"]["hint"];
  };
  const std::vector<TrustedKey> trusted = load_trusted_keys(kForeignModel / "model.pub");
  EXPECT_EQ(hint(read_file(kForeignModel / "model" / kModelSignatureName)),
            sha256_hex(trusted[0].key.to_pem()));
  EXPECT_EQ(hint(model_signature_text(sample_model(), kModelSigner)),
            sha256_hex(kModelSigner.public_key().to_pem()));
}

TEST(ModelSignature, NeedsAnEcdsaKey) {
  const SigningKey key = SigningKey::generate();
  EXPECT_THAT(message_of<ConfigError>([&] { (void)model_signature_text(sample_model(), key); }),
              HasSubstr("--algorithm ecdsa"));
}

TEST(ModelSignature, OfARevokedKeyCountsUntilItsTime) {
  std::vector<TrustedKey> trusted = kModelTrust;
  const std::string text = model_signature_text(sample_model(), kModelSigner);
  trusted[0].revoked = Revocation{"2026-11-27T12:00:01Z", "replaced"};
  EXPECT_EQ(parse_model_signature(text, "m", trusted).signature.state, SignatureState::trusted);
  trusted[0].revoked = Revocation{"2026-11-27T11:00:00Z", "replaced"};
  EXPECT_EQ(parse_model_signature(text, "m", trusted).signature.state, SignatureState::revoked);
}

// Whatever byte of the payload or the signature is changed, no trusted key has signed it.
TEST(ModelSignature, EveryChangedByteOfTheEnvelopeIsFound) {
  const std::string text = model_signature_text(sample_model(), kModelSigner);
  for (std::size_t at = text.find("\"payload\":\"") + 11; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    try {
      const SignedModel made = parsed_model(changed);
      if (made.signature.state == SignatureState::trusted) {  // the keyid and names of fields
        EXPECT_EQ(made.statement.files.size(), 3U) << at;
        EXPECT_EQ(made.statement.files[0].sha256, sha256_hex("config")) << at;
      }
    } catch (const DataError&) {
      continue;
    }
  }
}

TEST(ModelSignature, ContradictionsAreRefusedEvenIfTheyAreSigned) {
  const auto refusal = [](const std::function<void(nlohmann::json&)>& change) {
    return message_of<DataError>([&] { (void)parsed_model(with_statement(change)); });
  };
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["resources"][0]["name"] = "../config.json"; }),
              HasSubstr("m/model.sig: not the signature of a model: '../config.json' is not the"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["resources"][0]["algorithm"] = "blake3"; }),
              HasSubstr("digests of the kind 'blake3'"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["resources"][0]["digest"] = "00"; }),
              HasSubstr("'00' is not a SHA-256"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["resources"].erase(0); }),
              HasSubstr("is not that of the digests of its files"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["resources"] = nlohmann::json::array(); }),
              HasSubstr("about no file"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["serialization"]["method"] = "shards"; }),
              HasSubstr("only whole files"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["serialization"]["ignore_paths"] = {1}; }),
              HasSubstr("expected texts"));
  EXPECT_THAT(refusal([](auto& s) { s["subject"].push_back(s["subject"][0]); }),
              HasSubstr("is not that of the digests of its files"));
  EXPECT_THAT(refusal([](auto& s) { s["predicate"]["checkpoint"]["step"] = -1; }),
              HasSubstr("step"));
  EXPECT_THAT(refusal([](auto& s) { s["predicateType"] = "https://slsa.dev/provenance/v1"; }),
              HasSubstr("not an in-toto statement with https://model_signing/signature/v1.0"));
}

TEST(ModelSignature, OtherBundlesAreRefused) {
  const std::string text = model_signature_text(sample_model(), kModelSigner);
  for (const char* other : {"", "{}", "[]", "{\"mediaType\":\"x\"}"}) {
    EXPECT_THROW((void)parsed_model(other), DataError) << other;
  }
  nlohmann::json bundle = nlohmann::json::parse(text);
  bundle["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.4+json";
  EXPECT_THROW((void)parsed_model(bundle.dump()), DataError);
  bundle = nlohmann::json::parse(text);
  bundle.erase("dsseEnvelope");
  bundle["messageSignature"] = nlohmann::json::object();
  EXPECT_THROW((void)parsed_model(bundle.dump()), DataError);
  bundle = nlohmann::json::parse(text);
  bundle["dsseEnvelope"]["signatures"] = nlohmann::json::array();
  EXPECT_EQ(parsed_model(bundle.dump()).signature.state, SignatureState::none);
}

}  // namespace
}  // namespace trireme
