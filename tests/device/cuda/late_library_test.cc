#include "src/device/cuda/late_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

std::string error_of(LateLibrary& library, const char* function) {
  try {
    (void)library.function(function);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST(LateLibrary, FindsAFunctionInTheFirstPathThatCanBeLoaded) {
  LateLibrary library({"libtrireme_absent.so.7", "libm.so.6"});
  EXPECT_EQ(library.error(), "");
  const auto cosine = reinterpret_cast<double (*)(double)>(library.function("cos"));
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST(LateLibrary, SaysWhyNoPathCanBeLoaded) {
  LateLibrary library({"libtrireme_absent.so.7", "/proc/self/status"});
  EXPECT_THAT(library.error(), testing::StartsWith("libtrireme_absent.so.7: cannot open"));
  EXPECT_THAT(library.error(), testing::HasSubstr("; /proc/self/status: "));
  EXPECT_THAT(error_of(library, "cos"),
              testing::AllOf(testing::HasSubstr("cos cannot be called on "),
                             testing::HasSubstr("libtrireme_absent.so.7: cannot open")));
}

TEST(LateLibrary, NamesAFunctionThatTheLibraryLacks) {
  LateLibrary library({"libm.so.6"});
  EXPECT_THAT(error_of(library, "ncclCommRegister"),
              testing::AllOf(testing::HasSubstr("older than this program"),
                             testing::HasSubstr("undefined symbol: ncclCommRegister")));
}

}  // namespace
}  // namespace trireme::cuda
