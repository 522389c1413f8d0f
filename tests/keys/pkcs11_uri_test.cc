#include "src/keys/pkcs11_uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/keys/key_uri.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Pkcs11Uri, NamesATokenAndAKey) {
  const Pkcs11Uri uri = parse_pkcs11_uri(
      "pkcs11:token=my%20token;serial=01ab;manufacturer=Some%3bOne;model=v2;object=key%2F1;"
      "id=%00%fF;type=secret-key?module-path=/usr/lib/m.so&pin-source=file:/etc/pin");
  EXPECT_EQ(uri.token, "my token");
  EXPECT_EQ(uri.serial, "01ab");
  EXPECT_EQ(uri.manufacturer, "Some;One");
  EXPECT_EQ(uri.model, "v2");
  EXPECT_EQ(uri.object, "key/1");
  EXPECT_EQ(uri.id, std::string("\0\xff", 2));
  EXPECT_EQ(uri.module_path, "/usr/lib/m.so");
  EXPECT_EQ(uri.pin_source, "/etc/pin");
}

TEST(Pkcs11Uri, MostPartsMayBeMissing) {
  const Pkcs11Uri uri = parse_pkcs11_uri("pkcs11:serial=1;id=1");
  EXPECT_EQ(uri.module_path, "p11-kit-proxy.so");
  EXPECT_EQ(uri.pin_source, "");
  EXPECT_EQ(uri.token, "");
  EXPECT_EQ(parse_pkcs11_uri("pkcs11:token=a;object=b?pin-source=/pin").pin_source, "/pin");
  EXPECT_EQ(parse_pkcs11_uri("pkcs11:token=a;object=b?pin-source=file:///p").pin_source, "/p");
}

TEST(Pkcs11Uri, OtherTextsAreRefused) {
  for (const char* rest : {"",
                           ";",
                           "?",
                           "token=a",
                           "object=b",
                           "token=a;object",
                           "token=a;object=",
                           "token=;object=b",
                           "token=a;object=b;token=a",
                           "token=a;object=b;slot-id=1",
                           "token=a;object=b;type=cert",
                           "token=a;object=b;;",
                           "token=a;object=%",
                           "token=a;object=%4",
                           "token=a;object=%4g",
                           "token=a;object=%0a",
                           "token=%00;object=b",
                           "token=a;object=b?module-path=m.so",
                           "token=a;object=b?module-path=",
                           "token=a;object=b?pin-source=pin",
                           "token=a;object=b?pin-source=|cat",
                           "token=a;object=b?pin-source=file:pin",
                           "token=a;object=b?pin-source=file://host/pin",
                           "token=a;object=b?module-name=p11",
                           "token=a;object=b?pin-source=/a&pin-source=/b",
                           "token=a;object=b?x"}) {
    EXPECT_THROW((void)parse_pkcs11_uri(std::string("pkcs11:") + rest), ConfigError) << rest;
    EXPECT_THROW(check_key_uri(std::string("pkcs11:") + rest), ConfigError) << rest;
  }
  EXPECT_THROW((void)parse_pkcs11_uri("token=a;object=b"), ConfigError);
  EXPECT_THROW((void)parse_pkcs11_uri("pkcs11:token=a;object=" + std::string(5000, 'x')),
               ConfigError);
  EXPECT_NO_THROW(check_key_uri("pkcs11:token=a;object=b"));
}

TEST(Pkcs11Uri, APinIsRefusedAndNotRepeated) {
  for (const char* uri :
       {"pkcs11:token=a;object=b?pin-value=9753", "pkcs11:token=a;object=b?PIN-VALUE=9753",
        "pkcs11:pin-value=9753;token=a;object=b", "pkcs11:token=a;object=b;pin%2dvalue=9753"}) {
    const std::string message = message_of<ConfigError>([&] { check_key_uri(uri); });
    EXPECT_THAT(message, Not(HasSubstr("9753"))) << uri;
    EXPECT_THAT(message, HasSubstr("pin-source=file:/PATH")) << uri;
  }
  EXPECT_THAT(message_of<ConfigError>([] { check_key_uri("pkcs11:token=a;object=b?pin-value=1"); }),
              HasSubstr("change the PIN"));
}

TEST(Pkcs11Uri, MessagesSayWhatIsWrong) {
  const auto message = [](const std::string& rest) {
    return message_of<ConfigError>([&] { (void)parse_pkcs11_uri("pkcs11:" + rest); });
  };
  EXPECT_THAT(message("object=b"), HasSubstr("has no token: write pkcs11:token=NAME"));
  EXPECT_THAT(message("token=a"), HasSubstr("has no object and no id"));
  EXPECT_THAT(message("token=a;token=b"), HasSubstr("has token twice"));
  EXPECT_THAT(message("token=%zz"), HasSubstr("has a % without two hexadecimal digits"));
}

}  // namespace
}  // namespace trireme
