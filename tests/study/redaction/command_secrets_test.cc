#include "src/study/redaction/command_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(CommandSecrets, RemovesUsersAndPasswordsOfCurl) {
  for (const char* text :
       {"curl -su bob:hunter2x https://h", "curl -sSu bob:hunter2x",
        "curl -ubob:hunter2x https://h", "/usr/bin/curl -sSubob:hunter2x",
        "curl -s \\\n  -fu 'bob:a hunter2x' h", "curl -u\"bob:a hunter2x\" h",
        "curl --user=bob:hunter2x h", "curl -U bob:hunter2x h", "curl -kLu$NAME:hunter2x h",
        "['curl', '-su', 'bob:hunter2x']", "[curl, -su, bob:hunter2x]",
        "sh -c \"curl -su bob:hunter2x h\"", R"(["curl","-su","bob:hunter2x"])",
        R"(["/usr/bin/curl","-s","-ubob:hunter2x","h"])", R"({"cmd":"curl -su bob:hunter2x h"})",
        R"({"cmd":["curl","-U","bob:hunter2x"]})", "wget --user=bob:hunter2x h"}) {
    const Redacted result = redact(text);
    EXPECT_THAT(result.text, Not(::testing::HasSubstr("hunter2"))) << text;
    EXPECT_GE(result.secrets, 1) << text;
    EXPECT_EQ(redact(result.text).text, result.text) << text;
  }
  EXPECT_EQ(redact("curl -su bob:x https://h -o f\n").text, "curl -su REDACTED https://h -o f\n");
  EXPECT_EQ(redact("curl -ubob:x h").text, "curl -uREDACTED h");
}

TEST(CommandSecrets, TakesWholeWordsAndOptionsOfAllForms) {
  for (const char* text :
       {"softhsm2-util --init-token --pin hunter2x",
        "login --use-token --password hunter2x",
        "x --no-password --token hunter2x",
        "x --password-stdin --token hunter2x",
        "curl -u jane:'hunter2x' h",
        "curl -u jane:\"a hunter2x\" h",
        "curl -u \"jane\":\"hunter2x\"",
        "curl -u 'jane':hunter2x h",
        "curl -u 'jane:'\"hunter2x\" h",
        "curl -u 'jane:it'\\''shunter2x' h",
        "curl -u jane:foo\\ hunter2x h",
        "sh -c \"curl -u jane:'hunter2x' h\"",
        "sh -c \"curl -u \\\"jane:hunter2x\\\" h\"",
        "SSHPASS=hunter2x",
        "keytool -storepass hunter2x -x",
        "keytool --storepass hunter2x",
        "keytool -keypass hunter2x",
        "x -password 'hunter2x' y",
        "x -token \"hunter2x\" y",
        "x -Password \"hunter2x\" y",
        "sshpass -p $'hunter2x' ssh",
        "sshpass -vp hunter2x ssh",
        "Authorization: Digest username=\"jane\", response=\"hunter2x\"",
        "curl -H 'Authorization: Digest username=\"jane\", response=\"hunter2x\"' h",
        "curl -H \"Authorization: Digest a=\\\"jane\\\", b=\\\"hunter2x\\\"\" h",
        "setx API_KEY \"hunter2x\"",
        "#define API_KEY \"hunter2x\"",
        "$Password = ConvertTo-SecureString \"hunter2x\" -AsPlainText",
        "password(\"hunter2x\")",
        "password{\"hunter2x\"}",
        "user, password = \"bob\", \"hunter2x\"",
        "JSESSIONID=hunter2x",
        "sessionid=hunter2x; a",
        "Subscription-Key: hunter2x",
        "//npm.org/:_auth=hunter2x",
        "curl -b \"sid=hunter2x\" h",
        "curl --oauth2-bearer hunter2x h",
        "curl --cert c.pem:hunter2x h",
        "cmd: [x, --password, hunter2x, y]",
        "ipmitool -H n7 -U root -P hunter2x power status",
        "ldapsearch -x -D cn=a -w hunter2x -b dc=b",
        "/usr/bin/ldapmodify -w 'hunter2x y'",
        "smbclient -U joe%hunter2x //h/x",
        "lftp -u joe,hunter2x h",
        R"(["lftp", "-u", "joe,hunter2x"])",
        "- ipmitool\n- -P\n- hunter2x\n",
        "curl https://api.telegram.org/bot123456789:hunter2x/sendMessage"}) {
    const Redacted result = redact(text);
    EXPECT_THAT(result.text, Not(::testing::HasSubstr("hunter2"))) << text;
    EXPECT_GE(result.secrets, 1) << text;
    EXPECT_EQ(redact(result.text).text, result.text) << text;
  }
  EXPECT_EQ(redact("curl -u 'jane:'\"x\" h").text, "curl -u REDACTED h");
  EXPECT_EQ(redact("curl -H \"Cookie: a=b; c=d\" h").text, "curl -H \"Cookie: REDACTED\" h");
}

TEST(CommandSecrets, KeepsOtherOptions) {
  for (const char* text :
       {"docker login --password-stdin\nnext line", "docker login -u joe --password-stdin site.org",
        "use [x, --password, --token]", "curl -b jar.txt --cert c.pem h", "curl -o out:put h",
        "curl -su bob h", "curl -sSfL https://h -u 1:2", "ls -lu a:b", "docker run -u 1000:1000 x",
        "docker run -iu jane:jane x", "curl -X PUT -du a:b", "curl h\nls -su a:b",
        R"(["ls","-su","a:b"])", R"(["curl","-o","a:b"])"}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

}  // namespace
}  // namespace trireme
