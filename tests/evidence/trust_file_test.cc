#include "src/evidence/trust_file.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/evidence/keys.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::vector<TrustedKey> parsed(const std::string& text) {
  return parse_trusted_keys(text, "trust.pem");
}

TEST(TrustFile, TakesBackTheTrustInKeys) {
  const auto pem = [] { return SigningKey::generate().public_key().to_pem(); };
  const auto keys =
      parsed("# Site A\nrevoked: 2026-03-01T12:00:00Z  replaced by B \n" + pem() +
             "revoked:always\n# Kim\n" + pem() + "revoked: always\tlost\n" + pem() + pem());
  ASSERT_EQ(keys.size(), 4U);
  EXPECT_EQ(keys[0].name, "Site A");
  EXPECT_EQ(keys[0].revoked->since, "2026-03-01T12:00:00Z");
  EXPECT_EQ(keys[0].revoked->reason, "replaced by B");
  EXPECT_EQ(keys[1].name, "Kim");
  EXPECT_EQ(keys[1].revoked->since, "");
  EXPECT_EQ(revocation_text(keys[1]), ", which was revoked");
  EXPECT_EQ(keys[2].revoked->reason, "lost");
  EXPECT_FALSE(keys[3].revoked);
  EXPECT_EQ(revocation_text(keys[3]), "");
}

TEST(TrustFile, ARevocationCountsForEveryEntryOfItsKey) {
  const std::string pem = SigningKey::generate().public_key().to_pem();
  const std::string other = SigningKey::generate().public_key().to_pem();
  const std::string late = "revoked: 2026-03-01T12:00:00Z late\n" + pem;
  const std::string early = "revoked: 2026-02-01T12:00:00Z early\n" + pem;
  const std::string stolen = "revoked: always stolen\n" + pem;
  const std::vector<std::pair<std::string, std::string>> files = {
      {stolen + pem, "stolen"},        {pem + stolen, "stolen"},
      {late + stolen + pem, "stolen"}, {stolen + other + late, "stolen"},
      {late + other + early, "early"}, {pem + early + late + other, "early"}};
  for (const auto& [text, reason] : files) {
    for (const TrustedKey& key : parsed(text)) {
      if (key.key.to_pem() == other) {
        EXPECT_FALSE(key.revoked) << text;
        continue;
      }
      ASSERT_TRUE(key.revoked) << text;
      EXPECT_EQ(key.revoked->reason, reason) << text;
      EXPECT_FALSE(key.counts_at("2026-02-15T00:00:00Z")) << text;
    }
  }
}

TEST(TrustFile, CountsSignaturesByTheTimeThatTheyState) {
  const std::string pem = SigningKey::generate().public_key().to_pem();
  const TrustedKey key = parsed("revoked: 2026-03-01T12:00:00Z\n" + pem).front();
  EXPECT_TRUE(key.counts_at("2026-03-01T11:59:59Z"));
  EXPECT_TRUE(key.counts_at("2025-12-31T23:59:59Z"));
  for (const char* time : {"2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z", "", "0", "2026-01-01",
                           "2026-01-01T00:00:00", "2026-01-01T00:00:00+", "2026-01-01t00:00:00Z",
                           "2026-01-01T00:00:00Z "}) {
    EXPECT_FALSE(key.counts_at(time)) << time;
  }
  EXPECT_FALSE(parsed("revoked: always\n" + pem).front().counts_at("1970-01-01T00:00:00Z"));
  EXPECT_TRUE(parsed(pem).front().counts_at(""));
}

TEST(TrustFile, MisspeltRevocationsAreRefused) {
  const std::string pem = SigningKey::generate().public_key().to_pem();
  for (const std::string line :
       {"revoked:", "revoked: yes", "revoked: 2026-03-01", "revoked: 2026-03-01 12:00:00Z",
        "revoked: 2026-03-01T12:00:00", "revoked: 2026-03-01T12:00:00ZZ",
        "revoked: 2026-02-31T12:00:00Z", "revoked: 2026-03-01T24:00:00Z", "revoked: Always",
        "Revoked: always", "revoked always", "valid: always"}) {
    EXPECT_THAT(message_of<DataError>([&] { parsed(line + "\n" + pem); }),
                HasSubstr("trust.pem:1:"))
        << line;
  }
  EXPECT_THAT(message_of<DataError>([&] { parsed("revoked: always\nrevoked: always\n" + pem); }),
              HasSubstr("revoked twice"));
  EXPECT_THAT(message_of<DataError>([&] { parsed(pem + "revoked: always\n"); }),
              HasSubstr("no key follows"));
}

}  // namespace
}  // namespace trireme
