#include "src/evidence/digest_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

const std::string kOnes(64, '1');
const std::string kTwos(64, '2');

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { parse_digest_list(text, "SUMS"); });
}

TEST(DigestList, IsWhatSha256sumPrints) {
  const auto files = parse_digest_list(kOnes + "  a.tar.gz\n" + kTwos + "  b c\n", "SUMS");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].sha256, kOnes);
  EXPECT_EQ(files[0].name, "a.tar.gz");
  EXPECT_EQ(files[1].name, "b c");
}

TEST(DigestList, RefusesEverythingElse) {
  const std::string good = kOnes + "  a\n";
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(good + kTwos + "  b"), HasSubstr("SUMS:2: the last line has no end"));
  EXPECT_THAT(refusal(good + "\n"), HasSubstr("SUMS:2: expected 64"));
  EXPECT_THAT(refusal(std::string(64, 'A') + "  a\n"), HasSubstr("expected 64"));
  EXPECT_THAT(refusal(kOnes + " *a\n"), HasSubstr("expected 64"));
  EXPECT_THAT(refusal(std::string(63, '1') + "  a\n"), HasSubstr("expected 64"));
  EXPECT_THAT(refusal(good + kTwos + "  a\n"), HasSubstr("'a' stands twice"));
  for (const std::string name :
       {"", ".", "..", "/etc/passwd", "../a", "b/a", "a\\b", "a\r", "a\x1b[2J"}) {
    EXPECT_THAT(refusal(kOnes + "  " + name + "\n"), HasSubstr("plain name")) << name;
  }
  // What the key signs elsewhere must not be a list.
  EXPECT_THAT(refusal("DSSEv1 1 a 1 b\n"), HasSubstr("SUMS:1: expected 64"));
}

class SignedLists : public ::testing::Test {
 protected:
  SignedLists() : key(SigningKey::generate()), path(folder.path() / "SUMS") {
    write_named_file(path, kOnes + "  a\n");
  }
  std::vector<std::string> signers(const SigningKey& trusted) const {
    std::vector<std::string> names;
    for (const TrustedKey& each : read_signed_list(path, {{trusted.public_key(), "me"}}).signers) {
      names.push_back(each.name);
    }
    return names;
  }

  TempFolder folder;
  SigningKey key;
  std::filesystem::path path;
};

TEST_F(SignedLists, HaveASignatureOverTheirBytes) {
  sign_digest_list(path, key);
  const std::string signature = read_file(folder.path() / "SUMS.sig");
  EXPECT_TRUE(key.public_key().verifies(kOnes + "  a\n", signature));
  EXPECT_EQ(signers(key), std::vector<std::string>{"me"});
  EXPECT_EQ(signers(SigningKey::generate()), std::vector<std::string>{});
}

TEST_F(SignedLists, AreNotBelievedOnceTheyChange) {
  sign_digest_list(path, key);
  write_named_file(path, kTwos + "  a\n");
  EXPECT_EQ(signers(key), std::vector<std::string>{});
  std::string signature = read_file(folder.path() / "SUMS.sig");
  signature[7] ^= 1;
  write_named_file(path, kOnes + "  a\n");
  write_named_file(folder.path() / "SUMS.sig", signature);
  EXPECT_EQ(signers(key), std::vector<std::string>{});
}

TEST_F(SignedLists, NeedAWholeSignature) {
  EXPECT_THAT(message_of<PolicyError>([&] { (void)signers(key); }), HasSubstr("nobody has signed"));
  write_named_file(folder.path() / "SUMS.sig", "short");
  EXPECT_THAT(message_of<DataError>([&] { (void)signers(key); }),
              HasSubstr("the bytes of a signature"));
  write_named_file(folder.path() / "SUMS.sig", std::string(65, 'x'));
  EXPECT_THAT(message_of<DataError>([&] { (void)signers(key); }),
              HasSubstr("the bytes of a signature"));
  write_named_file(folder.path() / "SUMS.sig", std::string(66, 'x'));
  EXPECT_THROW((void)signers(key), DataError);
}

TEST_F(SignedLists, AreTheOnlyThingThatIsSigned) {
  write_named_file(path, "DSSEv1 1 a 1 b\n");
  EXPECT_THROW(sign_digest_list(path, key), DataError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "SUMS.sig"));
}

}  // namespace
}  // namespace trireme
