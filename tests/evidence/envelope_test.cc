#include "src/evidence/envelope.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

// https://github.com/secure-systems-lab/dsse/blob/master/protocol.md, "Test vectors".
constexpr const char* kType = "http://example.com/HelloWorld";

TEST(Envelope, SignaturesFitThePublicKeysBesideThem) {
  const SigningKey key = SigningKey::generate();
  Envelope envelope = make_envelope(kType, "text", &key);
  EXPECT_EQ(first_misfit(envelope), std::nullopt);
  envelope.signatures[0].public_key = key.public_key().to_der();
  EXPECT_EQ(first_misfit(parse_envelope(to_text(envelope), "it")), std::nullopt);
  Envelope edited = envelope;
  edited.payload = "other text";
  EXPECT_EQ(first_misfit(edited), key.public_key().id());
  Envelope other = envelope;
  other.signatures[0].public_key = SigningKey::generate().public_key().to_der();
  EXPECT_EQ(first_misfit(other), key.public_key().id());
  other.signatures[0].public_key = "no key";
  EXPECT_EQ(first_misfit(other), key.public_key().id());
}

TEST(Envelope, EncodesAsTheSpecificationSays) {
  EXPECT_EQ(pae(kType, "hello world"), "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  EXPECT_EQ(pae("", ""), "DSSEv1 0  0 ");
  const auto json = to_json(make_envelope(kType, "hello world", nullptr));
  EXPECT_EQ(json["payload"], "aGVsbG8gd29ybGQ=");
  EXPECT_EQ(json["payloadType"], kType);
}

TEST(Envelope, TellsWhoHasSigned) {
  const SigningKey ours = SigningKey::generate();
  const SigningKey theirs = SigningKey::generate();
  const std::vector<TrustedKey> trusted = {{ours.public_key(), "ours"}};
  const auto state = [&](const Envelope& envelope) {
    return find_signature(envelope, trusted).state;
  };
  const Envelope good = make_envelope(kType, "body", &ours);
  EXPECT_EQ(state(good), SignatureState::trusted);
  EXPECT_EQ(find_signature(good, trusted).key_ids,
            std::vector<std::string>{ours.public_key().id()});
  EXPECT_EQ(state(make_envelope(kType, "body", nullptr)), SignatureState::none);
  EXPECT_EQ(state(make_envelope(kType, "body", &theirs)), SignatureState::untrusted);
  EXPECT_EQ(find_signature(good, {}).state, SignatureState::untrusted);
  Envelope forged = good;
  forged.payload = "Body";
  EXPECT_EQ(state(forged), SignatureState::forged);
  forged = good;
  forged.payload_type += "/";
  EXPECT_EQ(state(forged), SignatureState::forged);
  forged = make_envelope(kType, "body", &theirs);
  forged.signatures[0].key_id = ours.public_key().id();
  EXPECT_EQ(state(forged), SignatureState::forged);
  Envelope both = make_envelope(kType, "body", &theirs);
  both.signatures.push_back(good.signatures[0]);
  EXPECT_EQ(state(both), SignatureState::trusted);
  Envelope extra = good;  // a good signature does not excuse one that is forged
  extra.signatures.push_back({ours.public_key().id(), std::string(64, 'x')});
  EXPECT_EQ(state(extra), SignatureState::forged);
  Envelope hidden = good;  // the identity is a hint only
  hidden.signatures[0].key_id = "";
  EXPECT_EQ(state(hidden), SignatureState::trusted);
}

TEST(Envelope, OfARevokedKeyDoesNotCount) {
  const SigningKey key = SigningKey::generate();
  const SigningKey other = SigningKey::generate();
  const auto finding = [&](const Envelope& envelope, const std::string& since) {
    return find_signature(envelope, {{key.public_key(), "ours", Revocation{since, "stolen"}},
                                     {other.public_key(), "theirs"}});
  };
  const std::string head = R"({"seq":1,"time":"2026-03-01T12:00:00Z"})";
  const std::string statement =
      R"({"predicate":{"runDetails":{"metadata":{"finishedOn":"2026-03-01T12:00:00Z"}}}})";
  const std::string certificate = R"({"predicate":{"finished":"2026-03-01T12:00:00Z"}})";
  for (const std::string& payload : {head, statement, certificate}) {
    const Envelope envelope = make_envelope(kType, payload, &key);
    EXPECT_EQ(finding(envelope, "").state, SignatureState::revoked);
    EXPECT_EQ(finding(envelope, "").signer(),
              name_of_key({key.public_key(), "ours"}) + ", which was revoked (stolen)");
    EXPECT_EQ(finding(envelope, "2026-03-01T12:00:00Z").state, SignatureState::revoked);
    EXPECT_EQ(finding(envelope, "2026-02-01T00:00:00Z").signer(),
              name_of_key({key.public_key(), "ours"}) +
                  ", which was revoked on 2026-02-01T00:00:00Z (stolen)");
    EXPECT_EQ(finding(envelope, "2026-03-01T12:00:01Z").state, SignatureState::trusted);
  }
  // What states no time may be of any time.
  for (const std::string payload : {"body", "{}", R"({"time":5})", R"({"time":"yesterday"})",
                                    R"({"time":"2026-03-01"})", R"({"predicate":[]})", "[1"}) {
    const Envelope envelope = make_envelope(kType, payload, &key);
    EXPECT_EQ(finding(envelope, "2999-01-01T00:00:00Z").state, SignatureState::revoked) << payload;
  }
  Envelope both = make_envelope(kType, head, &key);
  both.signatures.push_back(make_envelope(kType, head, &other).signatures[0]);
  EXPECT_EQ(finding(both, "").state, SignatureState::trusted);
  EXPECT_EQ(finding(both, "").key_ids, std::vector<std::string>{other.public_key().id()});
  Envelope forged = make_envelope(kType, head, &key);
  forged.payload += " ";
  EXPECT_EQ(finding(forged, "").state, SignatureState::forged);
}

TEST(Envelope, IsReadAsItWasWritten) {
  const SigningKey key = SigningKey::generate();
  const Envelope written = make_envelope(kType, std::string("\0\xff body", 7), &key);
  const Envelope read = parse_envelope(to_text(written), "file");
  EXPECT_EQ(read.payload, written.payload);
  EXPECT_EQ(to_text(read), to_text(written));
}

// A changed byte makes the text unreadable, or the signature bad, or changes nothing but the hint.
TEST(Envelope, EveryChangedByteIsFound) {
  const SigningKey key = SigningKey::generate();
  const std::vector<TrustedKey> trusted = {{key.public_key(), ""}};
  const std::string good = to_text(make_envelope(kType, "body of 16 bytes", &key));
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    for (const int flip : {1, 2, 32}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      try {
        const Envelope read = parse_envelope(bad, "file");
        if (find_signature(read, trusted).state == SignatureState::trusted) {
          EXPECT_EQ(read.payload, "body of 16 bytes");
          EXPECT_EQ(read.payload_type, kType);
        }
      } catch (const DataError&) {
      }
    }
  }
}

TEST(Envelope, RefusesTwoSignaturesWithOneName) {
  const SigningKey key = SigningKey::generate();
  Envelope twice = make_envelope(kType, "body", &key);
  twice.signatures.push_back(twice.signatures[0]);
  EXPECT_THROW((void)parse_envelope(to_text(twice), "file"), DataError);
  twice.signatures[1].key_id = "other";
  EXPECT_EQ(parse_envelope(to_text(twice), "file").signatures.size(), 2U);
}

TEST(Envelope, HasALimitedNumberOfSignatures) {
  Envelope many = make_envelope(kType, "body", nullptr);
  for (int i = 0; i < 64; ++i) {
    many.signatures.push_back({std::to_string(i), "x"});
  }
  EXPECT_EQ(parse_envelope(to_text(many), "file").signatures.size(), 64U);
  many.signatures.push_back({"64", "x"});
  EXPECT_THROW((void)parse_envelope(to_text(many), "file"), DataError);
}

TEST(Envelope, RefusesOtherTexts) {
  for (const char* const text :
       {"", "{}", "[]", "null", "{\"payload\":\"\",\"payloadType\":\"\"}",
        "{\"payload\":\"*\",\"payloadType\":\"\",\"signatures\":[]}",
        "{\"payload\":\"\",\"payloadType\":1,\"signatures\":[]}",
        "{\"payload\":\"\",\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[]}",
        "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":{}}",
        "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[1]}",
        "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[{\"keyid\":1,\"sig\":\"\"}]}",
        "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[{\"keyid\":\"\"}]}"}) {
    EXPECT_THROW((void)parse_envelope(text, "file"), DataError) << text;
  }
}

}  // namespace
}  // namespace trireme
