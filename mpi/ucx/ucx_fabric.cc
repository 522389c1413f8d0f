#include "mpi/ucx/ucx_fabric.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "mpi/ucx/ucx_check.h"
#include "mpi/ucx/ucx_devices.h"
#include "src/base/error.h"

namespace trireme {
namespace {

struct ConfigTraits {
  using Handle = ucp_config_t*;
  static ucp_config_t* none() { return nullptr; }
  static void close(ucp_config_t* config) { ucp_config_release(config); }
};
using ConfigHandle = UniqueHandle<ConfigTraits>;

// `key` is the variable's name inside UCX, without UCX_ and without the transport's prefix.
void set_default(ucp_config_t* config, const char* variable, const char* key, const char* value) {
  if (std::getenv(variable) == nullptr) {
    ucx_check(ucp_config_modify(config, key, value), variable);
  }
}

// Returns whether UCX can use only TCP between hosts.
bool only_tcp() {
  const char* const tls = std::getenv("UCX_TLS");
  if (tls != nullptr && (tls == std::string_view("tcp,self") || tls == std::string_view("tcp"))) {
    return true;
  }
  const auto devices = ucx_devices();
  return std::none_of(devices.begin(), devices.end(), [](const UcxDevice& device) {
    return device.network && device.transport != "tcp";
  });
}

ConfigHandle configuration() {
  ucp_config_t* config = nullptr;
  ucx_check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  ConfigHandle handle(config);
  if (only_tcp()) {
    set_default(config, "UCX_RNDV_THRESH", "RNDV_THRESH", "inf");
    set_default(config, "UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", "inf");
  } else {
    set_default(config, "UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", "500ms");
  }
  set_default(config, "UCX_TCP_KEEPIDLE", "KEEPIDLE", "1s");
  set_default(config, "UCX_TCP_KEEPINTVL", "KEEPINTVL", "1s");
  set_default(config, "UCX_TCP_KEEPCNT", "KEEPCNT", "2");
  set_default(config, "UCX_TCP_MAX_POLL", "MAX_POLL", "1");
  // These are eight times UCX's defaults, for fewer rounds of send, wake-up and copy per message.
  set_default(config, "UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "64k");
  set_default(config, "UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "128k");
  return handle;
}

void check_devices() {
  const char* const setting = std::getenv("UCX_NET_DEVICES");
  if (setting == nullptr) {
    return;
  }
  const auto devices = ucx_devices();
  if (names_absent_devices(setting, devices)) {
    throw ConfigError(
        fabric_fault("this host has none of the devices that UCX_NET_DEVICES names", devices));
  }
}

}  // namespace

UcxFabric::UcxFabric(int ranks) {
  keep_ucx_messages();
  check_devices();
  const ConfigHandle config = configuration();
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  params.estimated_num_eps = static_cast<std::size_t>(ranks);
  params.name = "trireme";
  ucp_context_h context = nullptr;
  const ucs_status_t status = ucp_init(&params, config.get(), &context);
  if (status == UCS_ERR_NO_DEVICE) {
    throw ConfigError(
        fabric_fault("UCX found no usable device" + last_ucx_message(), ucx_devices()));
  }
  ucx_check(status, "ucp_init");
  context_.reset(context);
}

}  // namespace trireme
