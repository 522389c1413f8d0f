#include "src/device/cuda_device.h"

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

constexpr const char* kAbsent =
    "this program was built without CUDA: configure with the preset 'cuda', or compute on the CPU "
    "(train.device=cpu, or --device cpu)";

}  // namespace

BackEnd back_end() { return BackEnd::none; }

std::string back_end_text() { return "no CUDA"; }

void ask_for_queues() {}
DeviceSearch find_devices() { return {0, DeviceSearch::Trouble::absent, kAbsent}; }
int device_count() { return 0; }

DeviceFacts device_identity(int) { throw ConfigError(kAbsent); }
bool can_access_peer(int, int) { throw ConfigError(kAbsent); }
CudaVersions cuda_versions() { return {}; }
std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}
std::string management_library() { return "libnvidia-ml.so.1"; }

DeviceFacts device_facts(int) { throw ConfigError(kAbsent); }
MemorySource& device_memory(int) { throw ConfigError(kAbsent); }
MemorySource& pinned_memory(int) { throw ConfigError(kAbsent); }
bool is_one_allocation(const void*, std::int64_t) { throw ConfigError(kAbsent); }
std::shared_ptr<StreamQueue> make_queue(int, QueueUse) { throw ConfigError(kAbsent); }
DeviceUse device_use() { return {}; }
void push_range(std::string_view) {}
void pop_range() {}

}  // namespace trireme::cuda
