#include "src/app/command/version.h"

#include <cstdio>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpi/nccl/nccl_world.h"
#include "src/app/command/commit.h"
#include "src/app/command/help_text.h"
#include "src/app/command/standard_output.h"
#include "src/app/sbom/formats.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

// The flags, as they were given.
struct Shown {
  bool version = false;
  bool json = false;
  std::string sbom;
};

void print_version(const Shown& shown) {
  if (!shown.sbom.empty()) {
    const BillOfMaterials bill = own_bill_of_materials("trireme", TRIREME_VERSION, kCommit);
    print_json(shown.sbom == "spdx" ? spdx_json(bill) : cyclonedx_json(bill));
  } else if (shown.json) {
    nlohmann::ordered_json json = {{"schema", 1}};
    json.update(version_json());
    print_json(json);
  } else {
    fmt::print(
        "trireme {} ({}){}\n", TRIREME_VERSION, kCommit,
        cuda::back_end() == cuda::BackEnd::none ? "" : fmt::format(", {}", cuda::back_end_text()));
  }
}

}  // namespace

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

BillText own_bill_text() {
  const BillOfMaterials bill = own_bill_of_materials("trireme", TRIREME_VERSION, kCommit);
  nlohmann::ordered_json json = cyclonedx_json(bill);
  json["metadata"].erase("timestamp");
  using Json = nlohmann::ordered_json;
  return {document_uuid(bill), json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

void add_version_flags(CommandLine& app, int& exit_code) {
  const auto shown = std::make_shared<Shown>();
  app.add_flag("--version", shown->version, "Print the version and exit");
  app.add_flag("--json", shown->json,
               "With --version: print as JSON, with the libraries it was built with");
  app.add_option("--sbom", shown->sbom,
                 "With --version: print the program and the shared objects that it has loaded, "
                 "with digests and Debian packages, as a software bill of materials (JSON)")
      .check(one_of({"cyclonedx", "spdx"}));
  app.callback([shown, &app, &exit_code] {
    if (shown->version) {
      print_version(*shown);
    } else if (!app.command_given()) {
      fmt::print("{}", help_text(app));
      exit_code = 2;
    }
  });
}

}  // namespace trireme
