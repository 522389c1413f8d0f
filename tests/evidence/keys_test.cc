#include "src/evidence/keys.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

SigningKey key_of(const std::string& digits) {
  const std::string bytes = from_hex(digits);
  SigningKey::Seed seed{};
  std::copy(bytes.begin(), bytes.end(), seed.begin());
  return SigningKey(seed);
}

// RFC 8032, section 7.1, tests 1 to 3.
struct Vector {
  const char* seed;
  const char* public_key;
  const char* message;
  const char* signature;
};
const Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"}};

TEST(Keys, SignAsTheStandardSays) {
  for (const Vector& vector : kVectors) {
    const SigningKey key = key_of(vector.seed);
    const std::string message = from_hex(vector.message);
    const std::string signature = key.sign(message);
    EXPECT_EQ(signature, from_hex(vector.signature));
    const std::string pem = key.public_key().to_pem();
    EXPECT_THAT(from_base64(pem.substr(27, 60)), testing::EndsWith(from_hex(vector.public_key)));
    EXPECT_TRUE(key.public_key().verifies(message, signature));
    EXPECT_FALSE(key.public_key().verifies(message + "x", signature));
  }
}

TEST(Keys, RefuseEveryChangedSignature) {
  const SigningKey key = key_of(kVectors[0].seed);
  const std::string good = key.sign("message");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(key.public_key().verifies("message", bad)) << at;
  }
  EXPECT_FALSE(key.public_key().verifies("message", good.substr(1)));
  EXPECT_FALSE(key.public_key().verifies("message", ""));
  EXPECT_FALSE(SigningKey::generate().public_key().verifies("message", good));
}

TEST(Keys, APublicKeySignsNothing) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key.pub";
  std::ofstream(file) << "# Site A\n" << SigningKey::generate().public_key().to_pem();
  EXPECT_THAT([&] { (void)SigningKey::load(file); },
              ThrowsMessage<DataError>(HasSubstr("this is a public key")));
}

TEST(Keys, AreSavedForTheirOwnerOnly) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key";
  const SigningKey key = SigningKey::generate();
  key.save(file);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(SigningKey::load(file).public_key().id(), key.public_key().id());
  EXPECT_THROW(key.save(file), PolicyError);
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0666U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_THAT([&] { (void)SigningKey::load(file); },
                ThrowsMessage<PolicyError>(HasSubstr("chmod 600")))
        << mode;
  }
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 1, 1), 0);
    EXPECT_THROW((void)SigningKey::load(file), PolicyError);
  }
}

void write_private(const std::filesystem::path& file, const std::string& text) {
  write_file_durably(file, text);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
}

TEST(Keys, RefuseEveryCutOfAPrivateKey) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key";
  SigningKey::generate().save(file);
  const std::string good = read_file(file);
  for (std::size_t bytes = 0; bytes + 1 < good.size(); ++bytes) {
    write_private(file, good.substr(0, bytes));
    EXPECT_THROW((void)SigningKey::load(file), DataError) << bytes;
  }
  write_private(file, SigningKey::generate().public_key().to_pem());
  EXPECT_THROW((void)SigningKey::load(file), DataError);
  write_private(file,
                "-----BEGIN ENCRYPTED "
                "PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED");
  EXPECT_THAT([&] { (void)SigningKey::load(file); },
              ThrowsMessage<DataError>(HasSubstr("passphrase")));
  EXPECT_THROW((void)SigningKey::load(folder.path() / "none"), NotFound);
}

TEST(Keys, OfEcdsaSignAndComeBackFromTheirFiles) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key";
  const SigningKey key = SigningKey::generate(PublicKey::Kind::ecdsa_p256);
  EXPECT_EQ(key.public_key().kind(), PublicKey::Kind::ecdsa_p256);
  key.save(file);
  const SigningKey loaded = SigningKey::load(file);
  EXPECT_EQ(loaded.public_key().id(), key.public_key().id());
  const std::string signature = loaded.sign("message");
  EXPECT_TRUE(has_signature_form(signature));
  EXPECT_TRUE(key.public_key().verifies("message", signature));
  EXPECT_FALSE(key.public_key().verifies("messages", signature));
  EXPECT_FALSE(SigningKey::generate(PublicKey::Kind::ecdsa_p256)
                   .public_key()
                   .verifies("message", signature));
}

// `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` has made it, and `openssl pkey
// -pubout` its public half.
constexpr const char* kOpensslPrivate =
    "-----BEGIN "
    "PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgYS+IOq34OvipLz8L\n"
    "NTXYOUV/TRoz6i4mlmHslWweoLehRANCAAT+FcGIjcligvY+wZS3K5s90xp5QYKR\n"
    "JChCm0scpHTBl/qBqatKgEz+jWsrNEaiqyozHcvnuhV776XS+2GcaMIW\n"
    "-----END "
    "PRIVATE KEY-----\n";
constexpr const char* kOpensslPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/hXBiI3JYoL2PsGUtyubPdMaeUGC\n"
    "kSQoQptLHKR0wZf6gamrSoBM/o1rKzRGoqsqMx3L57oVe++l0vthnGjCFg==\n"
    "-----END PUBLIC KEY-----\n";

TEST(Keys, OfEcdsaFromOpensslAreRead) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key";
  write_private(file, kOpensslPrivate);
  const SigningKey key = SigningKey::load(file);
  EXPECT_EQ(key.public_key().to_pem(), kOpensslPublic);
  EXPECT_TRUE(key.public_key().verifies("message", key.sign("message")));
  key.save(folder.path() / "again");
  EXPECT_EQ(read_file(folder.path() / "again"), kOpensslPrivate);
}

std::string private_pem(const std::string& der) {
  return "-----BEGIN "
         "PRIVATE KEY-----\n" +
         to_base64(der) +
         "\n-----END "
         "PRIVATE KEY-----\n";
}

TEST(Keys, OfEcdsaWhoseHalvesDoNotFitAreRefused) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "key";
  std::string digits = kOpensslPrivate;
  digits = digits.substr(digits.find('\n') + 1);
  digits = digits.substr(0, digits.find('-'));
  std::erase(digits, '\n');
  const std::string der = from_base64(digits);
  ASSERT_EQ(der.size(), 138U);
  write_private(file, private_pem(der));
  EXPECT_NO_THROW((void)SigningKey::load(file));
  // Each byte is part of the form, of the private key, or of the public key that must be its own.
  for (std::size_t at = 0; at < der.size(); ++at) {
    std::string changed = der;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_private(file, private_pem(changed));
    EXPECT_THROW((void)SigningKey::load(file), DataError) << at;
  }
  for (const char fill : {'\0', '\xff'}) {  // 0, and a number above the order of the curve
    std::string changed = der;
    std::fill_n(changed.begin() + 36, 32, fill);
    write_private(file, private_pem(changed));
    EXPECT_THROW((void)SigningKey::load(file), DataError);
  }
  write_private(file,
                "-----BEGIN EC "
                "PRIVATE KEY-----\nMAAA\n-----END EC "
                "PRIVATE KEY-----\n");
  EXPECT_THAT([&] { (void)SigningKey::load(file); },
              ThrowsMessage<DataError>(HasSubstr("openssl pkcs8 -topk8 -nocrypt")));
}

TEST(Keys, ATrustFileNamesItsKeys) {
  const PublicKey first = key_of(kVectors[0].seed).public_key();
  const PublicKey second = key_of(kVectors[1].seed).public_key();
  const auto keys = parse_trusted_keys(
      "# site A, 2026\n" + first.to_pem() + "\n#\n" + second.to_pem(), "trust.pem");
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].name, "site A, 2026");
  EXPECT_EQ(keys[0].key.id(), first.id());
  EXPECT_EQ(keys[1].name, "");
  EXPECT_EQ(keys[1].key.id(), second.id());
}

// The points of small order come from a computation in Python with the formulas of RFC 8032: L
// times random points of the curve, where L is the order of the base point.
TEST(Keys, ATrustFileHasNoKeyForWhichAnyoneCanSign) {
  const auto key = [](const std::string& digits) {
    const std::string bytes = from_hex(digits);
    PublicKey::Bytes raw{};
    std::copy(bytes.begin(), bytes.end(), raw.begin());
    return PublicKey(raw);
  };
  const std::string zeros(60, '0');
  const std::string ones(60, 'f');
  const std::string forged = from_hex("01" + std::string(126, '0'));
  EXPECT_TRUE(key("01" + zeros + "00").verifies("any message", forged));
  for (const std::string& digits :
       {"01" + zeros + "00", "ec" + ones + "7f", "00" + zeros + "00", "00" + zeros + "80",
        std::string("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
        std::string("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"),
        std::string("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
        std::string("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
        // Not canonical: the sign of x = 0, and y from p on.
        "01" + zeros + "80", "ec" + ones + "ff", "ed" + ones + "7f", "ed" + ones + "ff",
        "ee" + ones + "7f", "ff" + ones + "7f", "ff" + ones + "ff"}) {
    EXPECT_THAT([&] { (void)parse_trusted_keys("# Site\n" + key(digits).to_pem(), "trust.pem"); },
                ThrowsMessage<DataError>(HasSubstr("anyone can make signatures")))
        << digits;
  }
  for (const std::string& digits : {"eb" + ones + "7f", "02" + zeros + "00", "ed" + zeros + "7f"}) {
    EXPECT_EQ(parse_trusted_keys(key(digits).to_pem(), "trust.pem").size(), 1U) << digits;
  }
}

TEST(Keys, ATrustFileHasNothingElse) {
  const std::string pem = SigningKey::generate().public_key().to_pem();
  const TempFolder folder;
  SigningKey::generate().save(folder.path() / "key");
  const std::string secret = read_file(folder.path() / "key");
  // SubjectPublicKeyInfo of an X25519 key: the object identifier ends in 6e instead of 70.
  const std::string other = "-----BEGIN PUBLIC KEY-----\n" +
                            to_base64(from_hex("302a300506032b656e032100") + std::string(32, 'k')) +
                            "\n-----END PUBLIC KEY-----\n";
  for (const std::string& text :
       {"typo\n" + pem, pem + "typo\n", pem.substr(0, pem.size() - 8), pem.substr(0, 60), other,
        "-----BEGIN PUBLIC KEY-----\n" + std::string(1 << 20, '\n'),
        std::string("-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n")}) {
    EXPECT_THROW((void)parse_trusted_keys(text, "trust.pem"), DataError) << text.substr(0, 200);
  }
  for (const std::string& text :
       {std::string(), std::string("# nothing\n"), std::string(1 << 20, 'A'), pem.substr(0, 5)}) {
    EXPECT_THAT([&] { (void)parse_trusted_keys(text, "trust.pem"); },
                ThrowsMessage<ConfigError>(HasSubstr("trust.pem is no trust file")))
        << text.substr(0, 200);
  }
  for (const std::string& text : {secret, pem + secret, "typo\n" + secret}) {
    EXPECT_THAT([&] { (void)parse_trusted_keys(text, "trust.pem"); },
                ThrowsMessage<ConfigError>(HasSubstr("trust.pem holds a private key")));
  }
  EXPECT_THROW((void)load_trusted_keys(folder.path()), ConfigError);
  EXPECT_THROW((void)load_trusted_keys("/dev/null"), ConfigError);
  EXPECT_THROW((void)load_trusted_keys(folder.path() / "none"), NotFound);
  EXPECT_THAT([&] { (void)parse_trusted_keys(pem + "typo\n", "trust.pem"); },
              ThrowsMessage<DataError>(HasSubstr("trust.pem:4")));
}

}  // namespace
}  // namespace trireme
