#include "src/app/site/job_gpus.h"

#include <algorithm>
#include <regex>
#include <string>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::string_view kOrShare =
    "set train.share_device=true if ranks are to share a GPU, use a MIG slice or run under MPS";

// slurm.options may request GPUs in a way that node.gpus does not describe.
bool options_request_gpus(const SiteProfile& profile) {
  const auto& all = profile.slurm.options;
  return std::any_of(all.begin(), all.end(), [](const std::string& option) {
    return option.starts_with("--gpus") || option.starts_with("--gres") ||
           option.starts_with("--tres-per-");
  });
}

// Returns why the ranks of a node would share GPUs or parts of them; empty if they would not.
std::string why_shared(const SiteProfile::Node& node) {
  if (node.gpu_request == "mps") {
    return "node.gpu_request is mps, under which processes share a GPU";
  }
  if (is_mig_type(node.gpu_type)) {
    return fmt::format("node.gpu_type '{}' is a MIG slice, a part of a GPU", node.gpu_type);
  }
  if (node.ranks > node.gpus) {
    return fmt::format("node.ranks is {}, but node.gpus {}: each rank needs a GPU of its own",
                       node.ranks, node.gpus);
  }
  return "";
}

}  // namespace

bool is_mig_type(std::string_view gpu_type) {
  static const std::regex slice(R"((^|_)\d+g\.\d+gb)");
  return std::regex_search(gpu_type.begin(), gpu_type.end(), slice);
}

void check_gpus_of_job(const RunConfig& config, const SiteProfile& profile,
                       std::string_view cluster) {
  const std::string& device = config.train.device;
  if (device == "cpu") {
    return;
  }
  if (profile.node.gpus == 0) {
    if (device == "cuda" && !options_request_gpus(profile)) {
      throw ConfigError(fmt::format(
          "{}: node.gpus is 0, so that the job would have no GPU, but train.device is cuda: set "
          "node.gpus to the number of GPUs per node, or train.device=cpu",
          printable(cluster)));
    }
    return;
  }
  if (const std::string why = why_shared(profile.node);
      !why.empty() && !config.train.share_device) {
    throw ConfigError(fmt::format(
        "{}: {}; every start would be refused with train.device {}: change the profile, or {}{}",
        printable(cluster), why, device, kOrShare,
        device == "auto" ? "; train.device=cpu leaves the GPUs alone" : ""));
  }
}

}  // namespace trireme
