#include "src/study/redaction/redaction.h"

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
    // Plurals and longer names
    "passwords: [hunter2x]\n", "db_passwords:\n  - hunter2x\n", "secrets: {a: {b: hunter2x}}\n",
    R"({"secrets":{"a":"hunter2x"}})", R"({"MY_SECRETS":"hunter2x"})", "DB_PASSWORDS=hunter2x\n",
    "VAULT_SECRETS=hunter2x\n", "secretfoo: hunter2x\n", "passwordFile: hunter2x\n",
    "the_passwords_of_db: hunter2x\n", "api_keys: hunter2x\n", "tokens: hunter2x\n",
    "auth_tokens: [hunter2x]\n", "api_key_old: hunter2x\n", "tls_key=hunter2x\n",
    "kennwort: hunter2x\n", "db_credentials_file: hunter2x\n",
    // Scalars and keys of YAML
    "password: 'it''s hunter2x'\n", "password: two words\n  hunter2x\nb: 1\n",
    "password: two\n\n  hunter2x\nb: 1\n", "password: \"a\n\n  hunter2x\"\nb: 1\n",
    "api_key: # note\n  hunter2x\nb: 1\n", "api_key: #hunter2x\n", "? password\n: hunter2x\nb: 1\n",
    "? \"password\"\n: hunter2x\n", "password: !vault |\n  a\n  hunter2x\nb: 1\n",
    "password: !!str hunter2x\n", "{password: !!str \"hunter2x\"}",
    "- password: &a\n    hunter2x\n", "\"password\": two\n  hunter2x\nb: 1\n",
    // Elements of XML
    "<password type=\"plain\">hunter2x</password>", "<password\n  type='a'>\nhunter2x</password>",
    "<password value=\"hunter2x\"/>", "<secret><a>hunter2x</a></secret>",
    "<password><![CDATA[hunter2x]]></password>", "<entry key=\"password\">hunter2x</entry>",
    // Tables of TOML
    "[secret]\nb=\"hunter2x\"\n", "a = 1\n[db.secrets] # x\na = \"hunter2x\"\n",
    "[[secrets]]\n\"a\" = 'hunter2x'\n", "[secret.a]\n\nb = [\"hunter2x\"]\n",
    // Operators and words of shells
    "\"password\" => \"hunter2x\",", "password := \"hunter2x\"", "PASSWORD ?= hunter2x\n",
    "x.PASSWORD += 'hunter2x'", "if password == \"hunter2x\"", "set password \"hunter2x\"",
    "DB_PASSWORD=\"a\"'hunter2x'\"hunter2x\"\n", "export DB_PASSWORD=a'hunter2x'\"hunter2x\" x\n",
    "export DB_PASSWORD='it'\\''s hunter2x'\n", "PASSWORD=\"a\nhunter2x\"\nB=1\n",
    "docker login -u joe -p hunter2x site\n", "redis-cli -h h -a hunter2x ping\n",
    R"(["docker", "login", "-p", "hunter2x"])", R"(["x", "--password", "hunter2x"])",
    R"(["sshpass", "-phunter2x", "ssh"])", R"(["curl", "-u", "joe:hunter2x"])",
    "https://x.webhook.office.com/webhookb2/hunter2x",
    "# site\nTRIREME-KEY-1 hunter2x+/0123456789abcdefghijklmnopqrs=\n",
    R"({"a": "TRIREME-KEY-1 hunter2x+/0123456789abcdefghijklmnopqrs=\n"})",
    // Entries of ~/.netrc
    "machine h\n  login l\n  password hunter2x\n", "machine h login l\npassword hunter2x\n",
    "machine h\n  login l\n  password\n    hunter2x\n", "default\n\tpassword hunter2x\n",
    // Columns of tables
    "user,password\njane,hunter2x\n", "a;api_key;b\r\n1;\"x;hunter2x\";2\r\n",
    "user\ttoken\njoe\thunter2x",
    "\ufeff\"user\",\"db password\"\n1,\"a\"\"\nhunter2x\"\n2,hunter2y",
    // Tables below other lines, aligned ones, and those with bars
    "# made on Monday\nuser,password\njane,hunter2x\nend\n", "x\n\nuser\ttoken\njoe\thunter2x\n",
    "a: 1\nuser     password\n----     --------\njane     hunter2x\n",
    "USER  API KEY  SHELL\njane  hunter2x  sh\n", "\t user \t password\n\t jane \t hunter2x\n",
    " user | password \n------+----------\n jane | hunter2x\n(1 row)\n",
    "x\n| user | password |\n|---|---|\n| jane | hunter2x |\n",
    "x\nuser;\"db password\"\n1;\"a\"\"\nhunter2x\"\n2;hunter2y\n",
    // Sentences
    "the password is hunter2x, he said", "Password is: hunter2x.",
    "The API key was set to hunter2x", "password has been changed to 'my hunter2x'",
    "(the root password is `hunter2x`)", "Das Passwort ist hunter2x\n",
    "your token is now hunter2x\n", R"({"message":"the password is hunter2x"})",
    // Hashes of passwords
    "root:$6$salt$hunter2xhunter2xhunter2x:19000", "jane:$2b$12$hunter2xhunter2xhunter2x",
    "a: $$5$$rounds=5000$$salt$$hunter2xhunter2xhunter2x\n",
    R"(echo "\$y\$j9T\$salt\$hunter2xhunter2xhunter2x")",
    "x $argon2id$v=19$m=65536,t=3,p=4$c2FsdA$hunter2xhunter2xhunter2x y",
    // Other lines of shells and of Dockerfiles, and tabs
    "export PASSWORD=\"a\nhunter2x\"\nB=1\n", "A=1 declare -x PASSWORD='a\n\nhunter2x'\nB=1\n",
    "ENV PASSWORD hunter2x\n", "FROM x\n  ENV DB_PASS a \\\n  hunter2x\nRUN y\n",
    "password\thunter2x\n", "password\thunter2x\nuser\tjane\n", "  api_key \t my hunter2x\n",
    "password     hunter2x\n",
    // Lists of names and values, of which the first line looks like the header of a table
    "api_key\thunter2\ndb_password\thunter2x\ntoken\thunter2y\n",
    "api_key   hunter2\nhf_token  hunter2x\nmax_tokens  hunter2y\n",
    "key       value\npassword  hunter2\napi_key   hunter2x\n",
    "password  hunter2\nuser  joe\napi_key\thunter2x\n",
    "db_password  hunter2\napi_key\thunter2x\n", "password | hunter2\napi_key | hunter2x\n",
    "password,hunter2\napi_key,hunter2x\n", "password;hunter2\r\napi_key;hunter2x\r\n",
    "key,value\npassword,hunter2\nuser,joe\n", "| password | hunter2 |\n| db token | hunter2x |\n",
    "a\n\"password\",\"hunter2\"\n", "password,\"a\nhunter2\"\n", "\ufeffpassword\thunter2\n",
    "vault/hf/token\thunter2x\n", "x\npassword  a hunter2 y\n",
    // Prompts, and names of several words
    "Password for root: hunter2", "Password for 'https://jane@host': hunter2x\n",
    "\"wandb api key\": hunter2\n", "wandb api key: hunter2\n", "with API key: hunter2\n",
    "\"db password\":\n  hunter2\nb: 1\n",
    "{\"wandb api key\": \"hunter2\", \"a\": ", "password 2: hunter2x\n", "API key 2: hunter2x\n",
    "pin 1: hunter2x\n", "password old: hunter2x\n", "x\npassword old = a hunter2x\n",
    "password prod: hunter2x\n", "the db password 2: hunter2x\n", "db pass prod: hunter2x\n",
    "- **api key**: `hunter2x`\n", "- **token:** hunter2x\n",
    // Anchors of YAML
    "aa: &pw hunter2\npassword: *pw\n", "aa: &pw \"hunter2\"\ndb: {password: *pw}\n",
    "{a: &pw hunter2, password: *pw}\n", "a: &pw\n  - hunter2\nsecrets:\n  - b\n  - *pw\n",
    "a: &pw !!str hunter2\n\"api key\": *pw\n", "password: &pw\n  hunter2\na: *pw\n",
    // Colours
    "\033[31mpassword\033[0m: hunter2\n", "\033[1;31mpin\033[0m=hunter2\n",
    "{\"a\":\"\\u001b[31mpin\\u001b[0m: hunter2", "pass\033[1mword: hunter2\n",
    // JSON in JSON, and in lines
    R"({"a":"{\"b\":{\"password\":\"hunter2x\"}}"})", R"(INFO {"password": ["a", "hunter2x"]} x)",
    R"({"env":"A=1\nPASSWORD=hunter2x y"})",
    // Other names and signs
    "rootpw: hunter2x\n", "olcRootPW: hunter2x\n", "ldap_default_authtok = hunter2x\n",
    "snmp_community = hunter2x\n", "pw: hunter2x\n", "db_pw: hunter2x\n", "<pw>hunter2x</pw>",
    "routing_key: hunter2x\n", "passcode: hunter2x\n", "wpa_psk=hunter2x\n", "otp: hunter2x\n",
    "seed_phrase: a hunter2x\n", "my_app_key = \"hunter2x\"", "X-Auth: hunter2x",
    "curl -H 'X-Auth: hunter2x' h", "Bearer: hunter2x", "bearer=hunter2x",
    "basic_auth: joe:hunter2x\n", "password -> hunter2x", "the API key \u2192 'a hunter2x'",
    "password(\"hunter2x\")", "passwd('hunter2x')", "//joe:hunter2x@host/path",
    "url: //joe:hunter2x@host", "docker login -p hunter2x",
    "docker login site.org --password hunter2x",
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

// JSON stays valid, and what tells nothing stays as it is.
TEST(Redaction, WritesTextsIntoJson) {
  constexpr const char* kPairs[][2] = {
      {R"({"token": "x", "secret": false, "pass": null})",
       R"({"token": "REDACTED", "secret": false, "pass": null})"},
      {R"({"password":{"a":1},"api_keys":[],"pin":""})",
       R"({"password":"REDACTED","api_keys":[],"pin":""})"},
      {R"([{"name":"password","value":5},{"value":[1],"key":"pin"}])",
       R"([{"name":"password","value":"REDACTED"},{"value":"REDACTED","key":"pin"}])"},
      {R"({"cmd":"PASSWORD='x'","b":"it's"})", R"({"cmd":"PASSWORD='REDACTED'","b":"it's"})"},
      {R"({"a":"{\"pin\": 5}"})", R"({"a":"{\"pin\": \"REDACTED\"}"})"},
      {R"({"pass":"forward","M":1e15,"tokens":[1,2],"secrets_removed":3})",
       R"({"pass":"forward","M":1e15,"tokens":[1,2],"secrets_removed":3})"},
      {R"("password: x")", R"("password: REDACTED")"},
      {R"(["--password","x","y"])", R"(["--password","REDACTED","y"])"},
      {R"(["sshpass","-p","x","ssh"])", R"(["sshpass","-p","REDACTED","ssh"])"},
      // Cut off, as in the log of a run that was killed
      {R"({"pin": 12, "a": )", R"({"pin": "REDACTED", "a": )"},
      {"{\n \"pass\": null,\n \"secret\": {\"a\": 1},",
       "{\n \"pass\": null,\n \"secret\": \"REDACTED\","},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
    EXPECT_EQ(redact(expected).secrets, 0) << expected;
  }
}

TEST(Redaction, EndsWhereTheSecretEnds) {
  for (const char* text :
       {"password: 'it''s x'\nb: 1\n", "password: a b\n\n  c\nb: 1\n", "api_key: # c\n  x\nb: 1\n",
        "? password\n: x\nb: 1\n", "password: !vault |\n  x\n\nb: 1\n", "PASSWORD=\"a\"'x'\nb: 1\n",
        "<password a='1'>x</password>\nb: 1\n", "[secret]\na = 1\n[other]\nb: 1\n",
        "machine h\n login l\n password x\nb: 1\n", "user,pin\n1,2\n\nb: 1\n"}) {
    EXPECT_THAT(redact(text).text, ::testing::EndsWith("\nb: 1\n"));
  }
  EXPECT_EQ(redact("x\nuser;pin\n1;\"47 11\"\nnot a row\n").text,
            "x\nuser;pin\n1;\"REDACTED\"\nnot a row\n");
  EXPECT_EQ(redact("user  pass  n\njane  forward  1\njoe  x9z  2\n\npin  is  x\n").text,
            "user  pass  n\njane  forward  1\njoe  REDACTED  2\n\npin  is  x\n");
  EXPECT_EQ(redact("a:$1$salt$0123456789abcdefghijkl:b").text, "a:REDACTED:b");
  EXPECT_EQ(redact("ENV PASSWORD x y\nb: 1\n").text, "ENV PASSWORD REDACTED\nb: 1\n");
  EXPECT_EQ(redact("export PASSWORD=\"a\nx\"\nb: 1\n").text,
            "export PASSWORD=\"REDACTED\"\nb: 1\n");
  EXPECT_EQ(redact("a\npassword\tx\nb: 1\n").text, "a\npassword\tREDACTED\nb: 1\n");
  EXPECT_EQ(redact("its password is x9z. Then").text, "its password is REDACTED. Then");
  EXPECT_EQ(redact("<password a='1'>x</password>").text,
            "<password a='REDACTED'>REDACTED</password>");
  EXPECT_EQ(redact("- password: x\n  port: 22\n- - token: y\n    b: 2\n  - c: 3\n").text,
            "- password: REDACTED\n  port: 22\n- - token: REDACTED\n    b: 2\n  - c: 3\n");
  EXPECT_EQ(redact("- passwords:\n  - x\n  port: 2\n- b: 3\n").text,
            "- passwords: REDACTED\n  port: 2\n- b: 3\n");
  EXPECT_EQ(redact("wget --http-password=x http://y/z").text,
            "wget --http-password=REDACTED http://y/z");
  EXPECT_EQ(redact("  --password=x --nodes 4\nb: 1").text, "  --password=REDACTED --nodes 4\nb: 1");
  EXPECT_EQ(redact("PASSWORD=\"a\"'x' y").text, "PASSWORD=\"REDACTED\" y");
  EXPECT_EQ(redact("x PASSWORD=\"a\"'x' y").text, "x PASSWORD=\"REDACTED\" y");
  EXPECT_EQ(redact("user,pass,n\njane,forward,1\njoe,x9z,2\n").text,
            "user,pass,n\njane,forward,1\njoe,REDACTED,2\n");
}

// Where a line has two fields, of which the first is a secret's name, the second one is replaced.
// Between commas, the line may also be a header. Tables of passes and numbers of tokens stay.
TEST(Redaction, TellsTablesFromListsOfNamesAndValues) {
  constexpr const char* kPairs[][2] = {
      {"password,user\nx9z,jane\n", "password,REDACTED\nREDACTED,jane\n"},
      {"api_key\tx\ntoken\ty9z\nb\t1\n", "api_key\tREDACTED\ntoken\tREDACTED\nb\t1\n"},
      {"key  value\npin  x\nb  1\n", "key  value\npin  REDACTED\nb  1\n"},
      {"tokens,loss\n16384,2.5\n", "tokens,loss\n16384,2.5\n"},
      {"pass,ms\nforward,5\n", "pass,ms\nforward,5\n"},
      {"a [\n\"token\", {\"a\": 1}\n", "a [\n\"token\", {\"a\": 1}\n"},
      {"a [\n\"pin\", 5]\n", "a [\n\"pin\", 5]\n"},
      {"{\"a\": \"pin: *b &b ;\",\n\"c\": 1}", "{\"a\": \"pin: REDACTED\",\n\"c\": 1}"},
      {"{\"a\": \"\\\"pin\\\": *a &a \\\"x\"}", "{\"a\": \"\\\"pin\\\": \\\"REDACTED\\\"\"}"},
      {"pin: &b x\na: *b\n", "pin: &b REDACTED\na: *b\n"},
      {"a: &b x\nc: &d y\npin: *b\n", "a: &b REDACTED\nc: &d y\npin: REDACTED\n"},
      {"\033[31ma\033[0m \\\\u001b[0m", "a "},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

// A carriage return before the end of a line stays, whatever was replaced before it.
TEST(Redaction, KeepsTheEndsOfLines) {
  constexpr const char* kPairs[][2] = {
      {"pin: a\r\nb: 1\r\n", "pin: REDACTED\r\nb: 1\r\n"},
      {"pin: a\r", "pin: REDACTED\r"},
      {"DB_PASS=a b\r\n", "DB_PASS=REDACTED\r\n"},
      {"pin:\r\n  - a\r\n  - c\r\nb: 1\r\n", "pin: REDACTED\r\nb: 1\r\n"},
      {"a: &x b\r\npin: *x\r\n", "a: &x REDACTED\r\npin: REDACTED\r\n"},
      {"Authorization: Basic a b\r\nb: 1\r\n", "Authorization: REDACTED\r\nb: 1\r\n"},
      {"ENV PIN a b\r\n", "ENV PIN REDACTED\r\n"},
      {"user,pin\r\njoe,a\r\n", "user,pin\r\njoe,REDACTED\r\n"},
      {"the pin is a1z\r\n", "the pin is REDACTED\r\n"},
      {"  \"pin\": a\r\n", "  \"pin\": \"REDACTED\"\r\n"}};
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(Redaction, TakesLinearTime) {
  std::string nested;
  for (int i = 0; i < 50'000; ++i) {
    nested += "{\"a\":";
  }
  EXPECT_EQ(redact(nested).text, nested);
  for (const char* const part :
       {"pin, \"x",       "pin\ta\n",    "a: &b c *b ", "pin: *a &a ", "[*a, ",
        "api key ",       "pin for a: ", "\033[31m",    "\\",          "user,pin\n\"",
        "user  pin  x\n", "\"a,",        "$6$",         "$6$a$",       "pin is '",
        "ENV PIN \\\n",   "is ",         "password\t",  "pin,",        "|pin",
        "export A=",      "pin  ",       "was set to ", "<a>",         "<a b='",
        "</a>",           "<!--",        "<![CDATA[",   "<key>pin",    "<a><b>pin: c",
        "&lt;",           "{\"a\":\n",   "[\n"}) {
    std::string many = "x\n";
    while (many.size() < 200'000) {
      many += part;
    }
    EXPECT_GT(redact(many).text.size(), 0U) << part;
  }
}

TEST(Redaction, RemovesKnownForms) {
  for (const std::string key :
       {"hf_abcdefghijklmnopqrstuvwx", "ghp_abcdefghijklmnopqrstuvwx",
        "AKIA"
        "ABCDEFGHIJKLMNOP",
        "ASIA"
        "ABCDEFGHIJKLMNOP",
        "AIza"
        "SyabcdefghijklmnopqrstuvwxyzABCDEFG",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789", "dckr_pat_abcdefghijklmnop",
        "nvapi-abcdefghijklmnopqrst", "sk-abcdefghijklmnopqrstuvwx", "glpat-abcdefghijklmnopqrst",
        "dop_v1_abcdefghijklmnopqrst"}) {
    EXPECT_EQ(redact("x " + key + ", y").text, "x REDACTED, y");
  }
}

}  // namespace
}  // namespace trireme
