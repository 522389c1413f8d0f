// Texts in which no secret is found.
#include <string_view>

#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(HarmlessTexts, CountsAreNoSecrets) {
  for (const char* text : {"tokens: [1, 2, 3]\n",
                           "tokens:\n  - 1\n  - 2\nb: 1\n",
                           "tokens:\n- 5\n- 6\n",
                           "tokens:\n  train: 5\n  validation: 1.2e9\nb: 1\n",
                           "{\"tokens\": [1, 2], \"token\": 5}",
                           "tokens=16384 loss=2.1 lr=0.1\n",
                           "tokens: 16384 loss: 2.1\n",
                           "token: 5ms of all\n",
                           "max_tokens: {a: 1, b: 2}\n",
                           "pass: 17\n",
                           "pass\t17\n",
                           "pass  12.5\n",
                           "tokens,loss\n16384,2.5\n",
                           "id,token\n5,the\n",
                           "number of secrets is 128\n",
                           "the passwords are 12, the PASS: test_a\n",
                           "secret_bytes: 5, password_length: 12",
                           "{\"name\": \"tokens\", \"value\": 5}",
                           "<tokens>384</tokens>",
                           "joules/token: 3.2\n",
                           "cpu pin: 0-3\nforward pass: 12 s\nnext token: the\n"}) {
    EXPECT_EQ(redact(text).text, text);
    EXPECT_EQ(redact(text).secrets, 0) << text;
  }
  for (const char* text : {"tokens: [1, a]\n", "tokens:\n  - 1\n  - a\n", "token: a1\n",
                           "{\"tokens\": [1, \"a\"]}", "token: 123456:a\n", "pins: [1, 2]\n"}) {
    EXPECT_EQ(redact(text).secrets, std::string_view(text).starts_with("pins") ? 0 : 1) << text;
  }
}

TEST(HarmlessTexts, SentencesWithoutAValue) {
  for (const char* text :
       {"Failed password for root from 10.1.2.3 port 22 ssh2",
        "Accepted password for jane from 10.1.2.3 port 5566 ssh2",
        "3 secrets were removed from 12 files of run7", "no token for user jane: using the cache",
        "the passphrase was read from /etc/trireme/pass.txt in 5.2 ms",
        "the credentials of job 4711 are in /scratch/x.yaml", "the token for rank 3 is 50256",
        "a password to open the slot 3 of n7 is asked for", "tokens_2: 512", "pass2: 12.5 ms",
        "pass 2: loss 2.5", "training pass 2: loss 2.5", "forward pass 2: 12 s", "cpu pin 0: 5",
        "next token 2: the", "step 2: the password file 2",
        "error: secret/foo/bar: permission denied", "the password is wrong! Ask n7x."}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

TEST(HarmlessTexts, KeepsWhatIsNoSecret) {
  for (const char* text :
       {R"({"tokens":384,"tokens_per_s":11067.7,"gpu_joules_per_token":null})",
        "eos_token: 50256",
        "tokens: 384",
        "step 3: tokens=16384 loss=2.1",
        "train_tokens: 1.2e9 # in one epoch",
        "{\"a\": 1, \"special_tokens\": [\"<eos>\"]}",
        "token: null",
        "[INFO] secret",
        "the password is wrong, \"x\"",
        "a,b\n1,2\n",
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
        "the token is invalid, the secret is read-only and the password is NOT set",
        "the next token is 50256",
        "the forward pass is 12.5 ms, the second pass was 13.1 ms",
        "echo $1$2 $6$x $y",
        "x\nReading credentials, then keys\nDone, then more\n",
        "x\nconnect(user, password)\nclose(a, b)\n",
        "# type  layer   pass      M\n  fp32  head    forward   96\n  fp32  head    -  96\n",
        "  \"user\", \"password\"\n",
        "[\n\"user\",\"password\",\n\"a\",5\n]\n",
        "step  tokens  loss\n1     16384   2.5\n2     16k     2.4\n",
        "joules/token   3.2\n",
        "token 12 of 384, with the password file.txt and credentials in /etc/x2",
        "cannot read the credentials of run 5: no such file",
        "passphrases and PINs never leave it",
        "with password authentication: none",
        "a: &b x\nc: *b\n",
        "C:\\new\\u0041 \\",
        "token_type: bearer\n// note: ask jane@site.org\n",
        "//host/path:1@x and //a@b",
        "get_password(node12) and password(user) and Password(self.name2)",
        "token -> id, password -> passphrase",
        "the host_key, a cache_key: 5 and sort_key=name",
        "auth: munge\nxauth: file\nrobotp=5\n",
        "-----BEGIN CERTIFICATE-----\nabc"}) {
    EXPECT_EQ(redact(text).text, text);
    EXPECT_EQ(redact(text).secrets, 0);
  }
}

TEST(HarmlessTexts, KeepsNumbersAndOrdinaryNames) {
  for (const char* text :
       {"loss per token: 3.21", "backward pass: 12.3 ms", "tests pass: 17", "PASS: test_a",
        "token: 42", "cpu_pin: 0-3", "SORT_KEY=name", "PRIMARY_KEY=id", "secretary: jane",
        "secrets_found: 0", "api_keys: []", "tokens, loss, lr"}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

}  // namespace
}  // namespace trireme
