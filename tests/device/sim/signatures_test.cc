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

// Expects that the source checks all functions and constants of a header, and returns their number.
int expect_checked(const std::string& header, const std::string& source) {
  const std::string checked = std::regex_replace(text_of(source), std::regex("\\s+"), " ");
  const std::string text = text_of(header);
  const std::regex function("\n[a-zA-Z_: ]+\\*? ?\\b((cuda|cublas|cudnn|nccl)\\w+)\\(");
  const std::regex constant("\\b((cuda|CUDA|CUBLAS|CUDNN|nccl)\\w+) = -?\\d+");
  int count = 0;
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
  return count;
}

TEST(SimInterfaces, EveryFunctionAndConstantIsChecked) {
  int count = 0;
  for (const char* header :
       {"driver_types.h", "cuda_runtime.h", "library_types.h", "cublasLt.h", "nccl.h"}) {
    count += expect_checked(std::string("src/device/sim/include/") + header,
                            "tests/device/sim/interfaces_test.cc");
  }
  EXPECT_GT(count, 200);
}

TEST(SimInterfaces, EveryFunctionAndConstantOfCudnnIsChecked) {
  EXPECT_GT(
      expect_checked("src/device/cuda/include/cudnn.h", "tests/device/sim/cudnn_interface_test.cc"),
      80);
}

}  // namespace
}  // namespace trireme
