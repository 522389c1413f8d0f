#include "benchmarks/device/measured_device.h"

#include <utility>

#include "src/base/say.h"
#include "src/compute/device_choice.h"
#include "src/train/run/run_config.h"
#include "src/train/start/rank_devices.h"

namespace trireme {

void add_device_option(CommandLine& command, std::string& word) {
  command.add_option("--device", word, "Where to measure, as train.device says it")
      .check(one_of(device_words()));
}

Device measured_device(const std::string& word, AppContext& context) {
  if (word == "cpu") {
    return Device::cpu();
  }
  MpiSession& session = context.session();
  RunConfig config;
  config.train.device = word;
  const auto warn = [](const std::string& text) { say("warning: " + text); };
  std::vector<RankDevice> devices =
      agree_on_devices(config, session.places(), session.world(), warn, warn);
  const Device own = devices[static_cast<std::size_t>(session.world().rank())].device();
  note_devices(context, std::move(devices));
  return own;
}

MeasuredGroup::MeasuredGroup(MpiSession& session, Backend backend, Device device)
    : data_(session.make_world(backend)) {
  if (device.kind == DeviceKind::cuda) {
    control_ = data_->split(0, data_->rank(), "control");
    data_ = session.make_device_world(std::move(data_), {.device = device, .watch = {}});
    data_->prepare_transfers();
  }
}

}  // namespace trireme
