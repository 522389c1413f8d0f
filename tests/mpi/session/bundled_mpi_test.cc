#include "mpi/session/bundled_mpi.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(BundledMpi, OnlyAFolderWithTheMarkIsABundle) {
  const TempFolder folder;
  const std::filesystem::path program = folder.path() / "bin/trireme";
  EXPECT_EQ(bundle_of(program), "");
  EXPECT_EQ(bundle_of("/trireme"), "");
  std::filesystem::create_directories(folder.path() / "share/trireme");
  EXPECT_EQ(bundle_of(program), "");
  std::ofstream(folder.path() / "share/trireme/bundle") << "Needs a C library\n";
  EXPECT_EQ(bundle_of(program), folder.path());
}

}  // namespace
}  // namespace trireme
