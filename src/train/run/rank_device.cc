#include "src/train/run/rank_device.h"

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {

std::string RankDevice::kind_text() const {
  return !is_gpu ? "cpu" : is_simulated ? "simulated CUDA device" : name;
}

std::string RankDevice::text() const {
  return is_gpu ? fmt::format("{} {} ({}, {}, {})",
                              is_simulated ? "simulated CUDA device" : "CUDA device", index, name,
                              uuid, bus)
                : "cpu";
}

nlohmann::json to_json(const RankDevice& device) {
  if (!device.is_gpu) {
    return {{"kind", "cpu"}};
  }
  return {{"kind", "cuda"},
          {"simulated", device.is_simulated},
          {"index", device.index},
          {"name", device.name},
          {"uuid", device.uuid},
          {"bus", device.bus},
          {"multiprocessors", device.multiprocessors},
          {"compute_capability", device.compute_capability}};
}

RankDevice rank_device_from_json(const nlohmann::json& json) {
  RankDevice device;
  device.is_gpu = text_field(json, "kind") != "cpu";
  if (device.is_gpu) {
    device.is_simulated = flag_field(json, "simulated");
    device.index = static_cast<int>(count_field(json, "index", 0, 1 << 16));
    device.name = text_field(json, "name");
    device.uuid = text_field(json, "uuid");
    device.bus = text_field(json, "bus");
    device.multiprocessors = static_cast<int>(count_field(json, "multiprocessors", 0, 1 << 20));
    device.compute_capability =
        static_cast<int>(count_field(json, "compute_capability", 0, 1 << 20));
  }
  return device;
}

}  // namespace trireme
