#include "src/app/command/version.h"

#include <cstdio>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpi/nccl/nccl_world.h"
#include "src/app/command/commit.h"
#include "src/app/command/help_text.h"
#include "src/app/command/standard_output.h"
#include "src/device/cuda_device.h"

namespace trireme {

nlohmann::ordered_json version_json() {
  return {{"program", "trireme"},
          {"version", TRIREME_VERSION},
          {"commit", kCommit},
          {"built_with",
           {{"compiler", TRIREME_COMPILER},
            {"mpi", TRIREME_MPI_VERSION},
            {"hdf5", TRIREME_HDF5_VERSION},
            {"onednn", TRIREME_DNNL_VERSION},
            {"fmt", TRIREME_FMT_VERSION},
            {"cuda", cuda::back_end_text()},
            {"nccl", nccl_build_version()}}}};
}

void add_version_flags(CommandLine& app, int& exit_code) {
  const auto version = std::make_shared<bool>(false);
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--version", *version, "Print the version and exit");
  app.add_flag("--json", *json,
               "With --version: print as JSON, with the libraries it was built with");
  app.callback([version, json, &app, &exit_code] {
    if (*version && *json) {
      nlohmann::ordered_json shown = {{"schema", 1}};
      shown.update(version_json());
      print_json(shown);
    } else if (*version) {
      fmt::print("trireme {} ({}){}\n", TRIREME_VERSION, kCommit,
                 cuda::back_end() == cuda::BackEnd::none
                     ? ""
                     : fmt::format(", {}", cuda::back_end_text()));
    } else if (!app.command_given()) {
      fmt::print("{}", help_text(app));
      exit_code = 2;
    }
  });
}

}  // namespace trireme
