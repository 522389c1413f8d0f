#include "src/study/redaction/subscript_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(SubscriptText, ValuesBehindSubscriptsAreRemoved) {
  for (const char* text : {R"(os.environ["HF_TOKEN"] = "hunter2x")",
                           R"(cfg["password"] = "hunter2x")",
                           R"(wandb["api_key"]="hunter2x")",
                           R"(dict["secret"] : "hunter2x")",
                           R"(params[:password] = "hunter2x")",
                           R"($ENV{PASSWORD}="hunter2x";)",
                           R"(cfg["db"]["password"] = "hunter2x")",
                           "cfg[password]=hunter2x",
                           "cfg[`pin`] = `hunter2x`",
                           R"(  cfg["db"]['password']["value"] = 'a hunter2x')",
                           R"(passwords[0] = "hunter2x")",
                           R"(secrets["db"]["user"] = "hunter2x")",
                           R"($cfg->{'password'} = 'hunter2x';)",
                           "declare -A cfg=([user]=joe [password]=hunter2x)",
                           R"(cfg["password"] = f"hunter2x")",
                           R"(t = {["password"] = "hunter2x"})",
                           R"(cfg[ "password" ] = b'hunter2x')",
                           R"(cfg["password"] = get("x", "hunter2x"))",
                           R"(if cfg["password"] == "hunter2x":)",
                           "cfg[\"password\"] = \"\"\"a\nhunter2x\"\"\"\n",
                           R"(cfg["password"] = ("hunter2x"))",
                           R"({"cmd":"os.environ[\"HF_TOKEN\"] = \"hunter2x\""})",
                           R"({"cmd":"os.environ[\"HF_TOKEN\"] = \"hunter2x\"", "a)"}) {
    const Redacted result = redact(text);
    EXPECT_THAT(result.text, Not(::testing::HasSubstr("hunter2"))) << text;
    EXPECT_GE(result.secrets, 1) << text;
    EXPECT_EQ(redact(result.text).text, result.text) << text;
  }
  EXPECT_EQ(redact(R"(x; cfg["db"]["password"] = "a b"; y)").text,
            R"(x; cfg["db"]["password"] = "REDACTED"; y)");
  EXPECT_EQ(redact("x cfg[password]=x y\nb: 1\n").text, "x cfg[password]=REDACTED y\nb: 1\n");
}

TEST(SubscriptText, OtherBracketsStay) {
  for (const char* text :
       {"[secret]\na = 1 [token]: read", "[password]: enter it", "passwd[123]: started",
        "cfg[\"user\"] = \"x\"", "cfg[\"password\"], x", "cfg[\"password\"]\nb = 1",
        "tokens[5] = 384", "{token}: x", "a[\"password\"].read()", "[1]: x\n[\"a\"] = 5\n",
        "cfg[\"password\"] = None", "read(password) = x", "vocab[word] = 5"}) {
    const Redacted result = redact(text);
    EXPECT_EQ(result.secrets, std::string(text).starts_with("[secret]") ? 1 : 0) << result.text;
  }
}

TEST(SubscriptText, TakesLinearTime) {
  for (const char* const part : {"pin[", "[\"pin\"]", "{pin}", "a[pin]", "[\"pin\"", "pin[0]"}) {
    std::string many = "x\n";
    while (many.size() < 200'000) {
      many += part;
    }
    EXPECT_GT(redact(many + "=").text.size(), 0U) << part;
  }
}

}  // namespace
}  // namespace trireme
