#include "src/study/redaction.h"

#include <iterator>

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

// Each line holds one secret, "hunter2".
constexpr const char* kAttacks[] = {
    // Listings of the environment
    "AWS_SECRET_ACCESS_KEY=hunter2/def+x==\n", "MYSQL_PWD=hunter2x\n", "PGPASSWORD=hunter2x y\n",
    "DB_PASS=hunter2x\n", "SLURM_JWT=hunter2x\n", "GITHUB_PAT=hunter2x\n",
    "AZURE_STORAGE_KEY=hunter2x\n", "SECRET_KEY_BASE=hunter2x\n", "OPENAI_KEY=hunter2x\n",
    "LDAP_BINDPW=hunter2x\n", "A=AccountName=x;AccountKey=hunter2==;B=y\n",
    "environ({'WANDB_API_KEY': 'hunter2x', 'X': 'y'})", "(\"WANDB_API_KEY\", \"hunter2x\")",
    "setenv WANDB_API_KEY hunter2x\n",
    // URLs
    "https://h/x?sig=hunter2x%3D&se=2025", "https://h/x?X-Amz-Signature=hunter2x&a=1",
    "https://h/x?key=hunter2x", "https://jane:hun@hunter2x@host/path",
    "https://jane:a/hunter2x@host/path", "https://hooks.slack.com/services/T0/B0/hunter2x",
    "postgres://joe:hunter2x@db/x",
    // Configurations
    "encryption_key: hunter2x\n", "wandbApiKey: hunter2x\n", "\"accessToken\": \"hunter2x\"",
    "\"auth\": \"hunter2x\"", "password: \"a\\\" hunter2x\"\n", "password: a hunter2x\n",
    "password: |\n  a\n  hunter2x\nb: 1\n", "password:\n- a\n- hunter2x\nb: 1\n",
    "  secret:\n    value: hunter2x\n  b: 1\n", "{\"password\": [\n\"a\",\n\"hunter2x\"]}",
    "{a: 1, password: x hunter2x}", "<password>hunter2x</password>",
    "machine site.org login joe password hunter2x\n",
    // Tokens and PINs
    "key: pkcs11:token=evidence;object=a?module-path=/x.so&pin-value=hunter2x\n",
    "key: 'pkcs11:token=a?pin-value=hunter2,x&module-path=/x.so'\n", "pin: hunter2x\n",
    "user_pin: hunter2x\n", "pass: hunter2x\n", "db.pass: hunter2x\n", "--so-pin hunter2x",
    // Names and values apart
    R"({"name":"password","value":"hunter2x"})", R"({"value":"hunter2x","name":"password"})",
    R"({"Key": "db_password", "more": {"a": 1}, "Value": "hunter2x"})",
    R"([{"name":"a","value":"b"},{"name":"api_key","type":"text","value":"hunter2x"}])",
    "<name>password</name><value>hunter2x</value>", "<env name=\"password\" value=\"hunter2x\"/>",
    "env:\n- name: password\n  value: hunter2x\n", "env:\n- value: hunter2x\n  name: password\n",
    R"("{\"name\":\"password\",\"value\":\"hunter2x\"}")",
    // Values on other lines
    "{\"password\":\n  \"hunter2x\"}", "{\"password\"\n:\r\n[\"hunter2x\"]}",
    "\"password\":\n  hunter2x\nb: 1\n", "password = \"\"\"\nhunter2x\n\"\"\"\n",
    "password = '''hunter2x\n'''\n", "password: \"a\n  hunter2x\"\n",
    "export PASSWORD=\\\nhunter2x\n", "PASSWORD=a\\\nhunter2x\n", "x --password \\\n  hunter2x\n",
    // Escapes and blanks
    R"({"pass\u0077ord":"hunter2x"})", R"({"\u0070assword":"hunter2x"})",
    "\"pass\\x77ord\": hunter2x\n", "password\u00a0: hunter2x\n", "password\u2003=\u202fhunter2x\n",
    "sshpass -p hunter2x ssh n1", "sshpass -v -phunter2x ssh n1", "sshpass -p 'hunter2x y' ssh",
    R"(["sshpass", "-p", "hunter2x", "ssh"])",
    // Lines of logs
    "curl -u joe:hunter2x https://x", "authorization: bearer hunter2xyz",
    "-----BEGIN PGP "
    "PRIVATE KEY BLOCK-----\nhunter2\n-----END PGP PRIVATE KEY BLOCK-----\n",
    R"({"message":"with Authorization: Basic hunter2x== it failed","step":5})"};

TEST(Redaction, WithstandsAttacks) {
  for (const char* text : kAttacks) {
    const Redacted result = redact(text);
    EXPECT_THAT(result.text, Not(HasSubstr("hunter2"))) << text;
    EXPECT_GE(result.secrets, 1) << text;
    EXPECT_EQ(redact(result.text).text, result.text) << text;
  }
  EXPECT_EQ(redact("pkcs11:token=evidence;object=a?pin-value=hunter2x&module-path=/x.so y").text,
            "pkcs11:token=evidence;object=a?pin-value=REDACTED&module-path=/x.so y");
  EXPECT_EQ(redact(R"({"name":"password","value":"hunter2x"})").text,
            R"({"name":"password","value":"REDACTED"})");
  EXPECT_THAT(redact("- name: lr\n  value: 5\n- name: pin\n  value: x\n").text,
              HasSubstr("value: 5\n"));
  EXPECT_THAT(redact("password:\n- a\nb: 1\n").text, HasSubstr("b: 1"));
  EXPECT_THAT(redact(kAttacks[std::size(kAttacks) - 1]).text, HasSubstr("\"step\":5"));
}

TEST(Redaction, RemovesKnownForms) {
  for (const std::string key : {"hf_abcdefghijklmnopqrstuvwx", "ghp_abcdefghijklmnopqrstuvwx",
                                "AKIA"
                                "ABCDEFGHIJKLMNOP",
                                "ASIA"
                                "ABCDEFGHIJKLMNOP",
                                "AIza"
                                "SyabcdefghijklmnopqrstuvwxyzABCDEFG",
                                "npm_abcdefghijklmnopqrstuvwxyz0123456789",
                                "dckr_pat_abcdefghijklmnop", "nvapi-abcdefghijklmnopqrst",
                                "sk-abcdefghijklmnopqrstuvwx", "glpat-abcdefghijklmnopqrst"}) {
    EXPECT_EQ(redact("x " + key + ", y").text, "x REDACTED, y");
  }
}

TEST(Redaction, KeepsWhatIsNoSecret) {
  for (const char* text :
       {R"({"tokens":384,"tokens_per_s":11067.7,"gpu_joules_per_token":null})",
        "eos_token: 50256",
        "tokenizer: bytes",
        "PWD=/work",
        "gpu_joules_per_token: 3",
        "forward_pass: 5 ms",
        "public_key: abc",
        "key: layer.weight",
        "docker run -u 1000:1000 x",
        "http://site:80/path@v1",
        "http://site/@jane",
        "sha256:7786aab7ba0e926462a7c0e9f10f2474b702e92a7d4a6ccbf8e79d566830e96f",
        "the secret of the launch",
        R"({"name":"lr","value":"5"})",
        "pin_memory: true",
        "sshpass -e ssh n1",
        "ssh -p 22 n1",
        "pkcs11:token=evidence;object=a",
        "password",
        "http://site:80/path",
        "task-0003-1f00ba",
        "-----BEGIN CERTIFICATE-----\nabc"}) {
    EXPECT_EQ(redact(text).text, text);
    EXPECT_EQ(redact(text).secrets, 0);
  }
}

}  // namespace
}  // namespace trireme
