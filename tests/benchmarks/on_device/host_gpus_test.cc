#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "benchmarks/provenance.h"

namespace trireme {
namespace {

// Results that have been measured must not be lost because a GPU has an error.
TEST(Provenance, AnErrorOfAGpuIsRecorded) {
  const auto host = host_json();
  ASSERT_EQ(host.at("gpus").size(), 1U);
  EXPECT_EQ(host.at("gpu_driver"), "of CUDA 13.0");
  EXPECT_THAT(host.at("gpu_error").get<std::string>(),
              testing::HasSubstr("cudaErrorECCUncorrectable"));
  EXPECT_TRUE(host_json().at("gpu_error").is_null());  // the error came once
}

}  // namespace
}  // namespace trireme
