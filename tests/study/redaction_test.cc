#include "src/study/redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Redaction, RemovesValuesOfSecretNames) {
  for (const char* text :
       {"password: hunter2x\n", "  db.password = 'hunter2x'", R"({"api_key": "hunter2x", "a": 1})",
        R"("{\"access_key\":\"hunter2x\"}")", "export HF_TOKEN=hunter2x;", "--auth-token hunter2x",
        "Authorization: Basic hunter2x hunter2x", "secret: [a, hunter2x]\n",
        "https://jane:hunter2x@site/path", "curl -H 'X: Bearer hunter2x1'", "passphrase=\"hunter2x",
        "-----BEGIN RSA "
        "PRIVATE KEY-----\nhunter2x\n",
        "a -----BEGIN "
        "PRIVATE KEY-----\\nhunter2x\\n-----END PRIVATE KEY----- b"}) {
    const Redacted result = redact(text);
    EXPECT_THAT(result.text, Not(HasSubstr("hunter2x"))) << text;
    EXPECT_THAT(result.text, HasSubstr("REDACTED")) << text;
    EXPECT_EQ(result.secrets, 1) << text;
    EXPECT_EQ(redact(result.text).text, result.text) << text;
    EXPECT_EQ(redact(result.text).secrets, 0) << text;
  }
}

TEST(Redaction, RemovesKnownForms) {
  for (const std::string key : {"hf_abcdefghijklmnopqrstuvwx", "ghp_abcdefghijklmnopqrstuvwx",
                                "AKIA"
                                "ABCDEFGHIJKLMNOP",
                                "sk-abcdefghijklmnopqrstuvwx", "glpat-abcdefghijklmnopqrst"}) {
    EXPECT_EQ(redact("x " + key + ", y").text, "x REDACTED, y");
  }
}

TEST(Redaction, KeepsWhatIsNoSecret) {
  for (const char* text :
       {R"({"tokens":384,"tokens_per_s":11067.7,"gpu_joules_per_token":null})", "eos_token: 50256",
        "tokenizer: bytes",
        "sha256:7786aab7ba0e926462a7c0e9f10f2474b702e92a7d4a6ccbf8e79d566830e96f",
        "the secret of the launch", "password", "http://site:80/path", "task-0003-1f00ba",
        "-----BEGIN CERTIFICATE-----\nabc"}) {
    EXPECT_EQ(redact(text).text, text);
    EXPECT_EQ(redact(text).secrets, 0);
  }
}

}  // namespace
}  // namespace trireme
