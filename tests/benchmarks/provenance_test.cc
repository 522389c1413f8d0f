#include "benchmarks/provenance.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

void write_line(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

TEST(Provenance, AddsUpTheLastLevelCaches) {
  const TempFolder root;
  EXPECT_EQ(last_level_cache_bytes(root.path()), 0);
  for (int cpu = 0; cpu < 4; ++cpu) {
    const fs::path caches =
        root.path() / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "cache";
    write_line(caches / "index0/level", "1");
    write_line(caches / "index0/type", "Data");
    write_line(caches / "index0/size", "32K");
    write_line(caches / "index0/shared_cpu_list", std::to_string(cpu));
    // Two processors share each of the two caches.
    write_line(caches / "index3/level", "3");
    write_line(caches / "index3/type", "Unified");
    write_line(caches / "index3/size", "16384K");
    write_line(caches / "index3/shared_cpu_list", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(last_level_cache_bytes(root.path()), std::int64_t{32} << 20);
}

TEST(Provenance, NamesTheGpusAsTheSchemaWants) {
  cuda::DeviceFacts facts;
  facts.name = "NVIDIA H100 80GB HBM3";
  facts.uuid = "GPU-5b2e";
  facts.bus = "0000:1b:00.0";
  facts.bytes = std::int64_t{80} << 30;
  facts.multiprocessors = 132;
  facts.compute_capability = 90;
  const auto gpus = gpus_json({facts, facts});
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].at("name"), facts.name);
  EXPECT_EQ(gpus[0].at("uuid"), facts.uuid);
  EXPECT_EQ(gpus[0].at("memory_bytes"), facts.bytes);
  std::ifstream file(fs::path(TRIREME_SOURCE_DIR) / "benchmarks/schema/bench-2.schema.json");
  const auto schema = nlohmann::ordered_json::parse(file);
  const auto& host = schema.at("$defs").at("host").at("properties");
  std::vector<std::string> keys;
  for (const auto& [key, value] : gpus[1].items()) {
    keys.push_back(key);
  }
  EXPECT_EQ(host.at("gpus").at("items").at("required").get<std::vector<std::string>>(), keys);
  const auto machine = host_json();
  EXPECT_EQ(machine.at("gpus"), nlohmann::ordered_json::array());  // a program without CUDA
  EXPECT_TRUE(machine.at("gpu_driver").is_null());
  for (const auto& [key, value] : machine.items()) {
    EXPECT_TRUE(host.contains(key)) << key;
  }
}

TEST(Provenance, RecordsNoOtherVariable) {
  ::setenv("OMP_PLACES", "cores", 1);
  ::setenv("TRIREME_SECRET", "swordfish", 1);
  const auto environment = environment_json();
  EXPECT_EQ(environment.at("OMP_PLACES"), "cores");
  EXPECT_EQ(environment.dump().find("swordfish"), std::string::npos);
  ::unsetenv("OMP_PLACES");
  ::unsetenv("TRIREME_SECRET");
}

TEST(Provenance, KnowsTheClock) {
  const auto clock = clock_json();
  EXPECT_GT(clock.at("resolution_ns").get<double>(), 0);
  EXPECT_GT(clock.at("call_ns").get<double>(), 0);
}

}  // namespace
}  // namespace trireme
