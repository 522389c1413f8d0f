// interfaces_test.cc must check everything that the stand-in headers declare.
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace trireme {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(TRIREME_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SimInterfaces, EveryFunctionAndConstantIsChecked) {
  const std::string checked =
      std::regex_replace(text_of("tests/device/sim/interfaces_test.cc"), std::regex("\\s+"), " ");
  int count = 0;
  for (const char* header :
       {"driver_types.h", "cuda_runtime.h", "library_types.h", "cublasLt.h", "nccl.h"}) {
    const std::string text = text_of(std::string("src/device/sim/include/") + header);
    const std::regex function("\n[a-zA-Z_: ]+\\*? ?\\b((cuda|cublas|nccl)\\w+)\\(");
    const std::regex constant("\\b((cuda|CUDA|CUBLAS|nccl)\\w+) = -?\\d+");
    for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at) {
      const std::string name = (*at)[1];
      if (name == "cudaLaunchKernelEx" || name == "cudaFuncSetAttribute") {
        continue;  // templates
      }
      ++count;
      EXPECT_NE(checked.find(", " + name + ", ("), std::string::npos) << header << ": " << name;
    }
    for (std::sregex_iterator at(text.begin(), text.end(), constant), end; at != end; ++at) {
      ++count;
      const std::string name = (*at)[1];
      EXPECT_NE(checked.find("VALUE(" + name + ","), std::string::npos) << header << ": " << name;
    }
  }
  EXPECT_GT(count, 200);
}

}  // namespace
}  // namespace trireme
