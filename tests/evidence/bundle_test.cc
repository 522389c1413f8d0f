#include "src/evidence/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class BundleTest : public testing::Test {
 protected:
  // Returns the line of a checkpoint with this number, whose parent is the one before.
  Envelope envelope(int number, const SigningKey* key) const {
    Provenance provenance;
    provenance.subjects = {{kManifestSubject, sha256_hex(std::to_string(number))}};
    if (number > 0) {
      provenance.materials = {
          {"parent", "file:///c/manifest.json", sha256_hex(std::to_string(number - 1))}};
    }
    provenance.builder = "urn:test";
    return make_envelope(std::string(kStatementType), statement_text(provenance), key);
  }
  std::string bundle(int number) const {
    return bundle_text(envelope(number, &ours_), number == 0 ? "" : bundle(number - 1));
  }
  std::vector<SignedStatement> parse(std::string_view text) const {
    return parse_bundle(text, "FILE", trusted_);
  }
  void refuses(const std::string& text, const std::string& what) const {
    EXPECT_THAT([&] { parse(text); }, ThrowsMessage<DataError>(HasSubstr(what))) << text;
  }

  const SigningKey ours_ = SigningKey::generate();
  const SigningKey theirs_ = SigningKey::generate();
  const std::vector<TrustedKey> trusted_ = {{ours_.public_key(), "ours"}};
};

TEST_F(BundleTest, HoldsTheAncestors) {
  const auto statements = parse(bundle(3));
  ASSERT_EQ(statements.size(), 4U);
  EXPECT_EQ(statements[3].provenance.subjects[0].sha256, sha256_hex("0"));
  for (const SignedStatement& each : statements) {
    EXPECT_EQ(each.signature.state, SignatureState::trusted);
  }
  EXPECT_EQ(statements[1].line + "\n", bundle(2).substr(0, statements[1].line.size() + 1));
}

TEST_F(BundleTest, DropsTheOldestAncestors) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text = bundle_text(envelope(i, &ours_), kept_ancestors(text));
  }
  EXPECT_EQ(parse(text).size(), kMostAncestors + 1);
}

TEST_F(BundleTest, HasALimitedNumberOfLines) {
  refuses(bundle(static_cast<int>(kMostAncestors) + 1), "has more than 256 lines");
}

TEST_F(BundleTest, KeepsAncestorsOfALimitedSize) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines += std::string((1 << 20) - 1, static_cast<char>('a' + i)) + "\n";
  }
  EXPECT_EQ(kept_ancestors(lines), lines.substr(0, 8 << 20));
  EXPECT_EQ(kept_ancestors(std::string(9 << 20, 'x') + "\n"), "");
  EXPECT_EQ(kept_ancestors(""), "");
}

TEST_F(BundleTest, TellsWhoHasSigned) {
  EXPECT_EQ(parse(to_text(envelope(0, nullptr)))[0].signature.state, SignatureState::none);
  EXPECT_EQ(parse(to_text(envelope(0, &theirs_)))[0].signature.state, SignatureState::untrusted);
  Envelope both = envelope(0, &ours_);
  both.signatures.push_back(envelope(0, &theirs_).signatures[0]);
  const SignedStatement statement = parse(to_text(both))[0];
  EXPECT_EQ(statement.signature.state, SignatureState::trusted);
  EXPECT_THAT(statement.other_signers, ElementsAre(theirs_.public_key().id()));
}

TEST_F(BundleTest, NamesAllTrustedSigners) {
  Envelope both = envelope(0, &ours_);
  both.signatures.push_back(envelope(0, &theirs_).signatures[0]);
  const std::vector<TrustedKey> trusted = {{theirs_.public_key(), "theirs"},
                                           {ours_.public_key(), "ours"},
                                           {ours_.public_key(), "again"}};
  const SignedStatement statement = parse_bundle(to_text(both), "FILE", trusted)[0];
  EXPECT_EQ(statement.signature.state, SignatureState::trusted);
  EXPECT_THAT(statement.signature.signers,
              ElementsAre(HasSubstr("ours (key "), HasSubstr("theirs (")));
  EXPECT_THAT(statement.signature.signer(), HasSubstr(") and theirs (key "));
  EXPECT_TRUE(statement.other_signers.empty());
  std::swap(both.signatures[0].key_id, both.signatures[1].key_id);
  EXPECT_EQ(find_signature(both, trusted).state, SignatureState::forged);
  both.signatures[0].key_id = "nobody";
  both.signatures[1].key_id = "nobody else";
  EXPECT_THAT([&] { parse_bundle(to_text(both), "FILE", trusted); },
              ThrowsMessage<DataError>(HasSubstr("its keyid was edited")));
}

TEST_F(BundleTest, FindsEveryChangedByte) {
  const std::string good = bundle(0);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string text = good;
    text[at] = static_cast<char>(text[at] ^ (at % 2 == 0 ? 1 : 32));
    try {
      EXPECT_NE(parse(text)[0].signature.state, SignatureState::trusted) << at << ": " << text;
    } catch (const DataError&) {
      // The line is refused as a whole.
    }
  }
}

TEST_F(BundleTest, FindsChangedLines) {
  const std::string good = bundle(2);
  const std::string first = good.substr(0, good.find('\n') + 1);
  const std::string rest = good.substr(first.size());
  const std::string second = rest.substr(0, rest.find('\n') + 1);
  refuses("", "is empty");
  refuses("\n", "line 1");
  refuses(good.substr(0, good.size() - 1), "ends within line 3: it was cut");
  refuses(first + rest.substr(second.size()), "line 2 is not about the parent of line 1");
  refuses(second + first, "line 2 is not about the parent of line 1");
  refuses(first + first, "line 2 is not about the parent of line 1");
  refuses(good + first, "line 4 is not about the parent of line 3");
  refuses(" " + good, "line 1: it is not written as Trireme writes it, so it was edited");
  Envelope other_key = envelope(0, &ours_);
  other_key.signatures[0].key_id = theirs_.public_key().id();
  refuses(to_text(other_key), "its keyid was edited");
  refuses(to_text(make_envelope("text/plain", "x", &ours_)), "its payload has the type");
  refuses(to_text(make_envelope(std::string(kStatementType), "{}", &ours_)), "line 1");
}

}  // namespace
}  // namespace trireme
