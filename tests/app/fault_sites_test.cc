// Tests the list of all fault points against the sources that pass them.
#include "src/app/run/fault_sites.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/checkpoint_fault_sites.h"
#include "io/data/loader_fault_sites.h"
#include "mpi/communication_fault_sites.h"
#include "src/base/file_fault_sites.h"
#include "src/train/training_fault_sites.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Returns the names of the points that a source passes: literals that are the first argument of one
// of the functions below.
Names points_passed_in(const fs::path& source) {
  std::ostringstream stream;
  stream << std::ifstream(source).rdbuf();
  const std::string text = stream.str();
  Names names;
  for (std::size_t quote = text.find('"', 1); quote != std::string::npos;
       quote = text.find('"', quote + 1)) {
    const std::size_t open = text.find_last_not_of(" \n", quote - 1);
    if (open == std::string::npos || text[open] != '(') {
      continue;
    }
    const std::size_t before = text.find_last_not_of("abcdefghijklmnopqrstuvwxyz_", open - 1);
    const std::string function = text.substr(before + 1, open - before - 1);
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.", quote + 1);
    if ((function == "fault" || function == "device_fault" || function == "fault_call" ||
         function == "pass") &&
        end != std::string::npos && text[end] == '"') {
      names.insert(text.substr(quote + 1, end - quote - 1));
    }
  }
  return names;
}

Names points_passed_below(const std::string& room) {
  Names names;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(fs::path(TRIREME_SOURCE_DIR) / room)) {
    const std::string name = entry.path().filename().string();
    if ((name.ends_with(".cc") || name.ends_with(".h")) && name != "fault.h") {
      names.merge(points_passed_in(entry.path()));
    }
  }
  return names;
}

Names names_of(std::span<const FaultSite> sites) {
  Names names;
  for (const FaultSite& site : sites) {
    EXPECT_TRUE(names.emplace(site.name).second) << site.name << " is listed twice";
  }
  return names;
}

TEST(FaultSites, EachRoomListsThePointsOfItsOwnSources) {
  const std::map<std::string, std::span<const FaultSite>> lists = {
      {"src/base", kFileFaultSites},      {"mpi", kCommunicationFaultSites},
      {"io/data", kLoaderFaultSites},     {"io/checkpoint", kCheckpointFaultSites},
      {"src/train", kTrainingFaultSites},
  };
  for (const auto& [room, sites] : lists) {
    EXPECT_EQ(points_passed_below(room), names_of(sites)) << room;
  }
}

TEST(FaultSites, AreThoseOfAllSources) {
  Names passed;
  for (const char* top : {"src", "io", "mpi", "slurm"}) {
    passed.merge(points_passed_below(top));
  }
  EXPECT_EQ(passed, names_of(fault_sites()));
}

TEST(FaultSites, StandInTheOrderInWhichARunReachesTheirParts) {
  std::vector<std::string> parts;
  for (const FaultSite& site : fault_sites()) {
    const std::string part(site.name.substr(0, site.name.find('.')));
    if (parts.empty() || parts.back() != part) {
      parts.push_back(part);
    }
  }
  EXPECT_THAT(parts, testing::ElementsAre("start", "data", "load", "step", "comm", "ckpt", "memory",
                                          "finish", "file"));
  EXPECT_EQ(fault_sites().front().name, "start.init");
  EXPECT_EQ(find_fault_site(fault_sites(), "finish.done") + 1,
            find_fault_site(fault_sites(), "finish.finalize"));
}

TEST(FaultSites, AreFoundByName) {
  const FaultSite* const found = find_fault_site(kCheckpointFaultSites, "ckpt.rename");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->kind, FaultSite::Kind::point);
  EXPECT_EQ(find_fault_site(kCheckpointFaultSites, "ckpt.renam"), nullptr);
  EXPECT_EQ(find_fault_site(kCheckpointFaultSites, "step.end"), nullptr);
}

}  // namespace
}  // namespace trireme
