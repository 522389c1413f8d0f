#include "mpi/ucx/ucx_devices.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fnmatch.h>
#include <uct/api/uct.h>

#include "mpi/ucx/ucx_check.h"
#include "src/base/error.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

struct MdTraits {
  using Handle = uct_md_h;
  static uct_md_h none() { return nullptr; }
  static void close(uct_md_h md) { uct_md_close(md); }
};

void add_devices(uct_md_h md, std::vector<UcxDevice>& devices) {
  uct_tl_resource_desc_t* found = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(md, &found, &count) != UCS_OK) {
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    const uct_tl_resource_desc_t& device = found[i];
    devices.push_back({device.tl_name, device.dev_name, device.dev_type == UCT_DEVICE_TYPE_NET});
  }
  uct_release_tl_resource_list(found);
}

UniqueHandle<MdTraits> open_md(uct_component_h component, const char* name) {
  uct_md_config_t* config = nullptr;
  uct_md_h md = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) == UCS_OK) {
    if (uct_md_open(component, name, config, &md) != UCS_OK) {
      md = nullptr;
    }
    uct_config_release(config);
  }
  return UniqueHandle<MdTraits>(md);
}

void add_devices(uct_component_h component, std::vector<UcxDevice>& devices) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK) {
    return;
  }
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (domains.empty() || uct_component_query(component, &attributes) != UCS_OK) {
    return;
  }
  for (const uct_md_resource_desc_t& domain : domains) {
    if (const auto md = open_md(component, domain.md_name)) {
      add_devices(md.get(), devices);
    }
  }
}

std::string setting_of(const char* name) {
  const char* value = std::getenv(name);
  return fmt::format("{}{}", name,
                     value == nullptr ? std::string(" is not set") : fmt::format("={}", value));
}

}  // namespace

std::vector<UcxDevice> ucx_devices() {
  std::vector<UcxDevice> devices;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  ucx_check(uct_query_components(&components, &count), "uct_query_components");
  for (unsigned i = 0; i < count; ++i) {
    add_devices(components[i], devices);
  }
  uct_release_component_list(components);
  return devices;
}

std::string describe(const std::vector<UcxDevice>& devices) {
  std::string text;
  std::vector<std::string> reported;
  for (const UcxDevice& device : devices) {
    if (std::find(reported.begin(), reported.end(), device.transport) != reported.end()) {
      continue;
    }
    reported.push_back(device.transport);
    text += fmt::format("{}{} on", text.empty() ? "" : "; ", device.transport);
    for (const UcxDevice& other : devices) {
      text += other.transport == device.transport ? " " + other.name : "";
    }
  }
  return text;
}

bool names_absent_devices(const std::string& setting, const std::vector<UcxDevice>& devices) {
  if (setting.starts_with('^')) {
    return false;
  }
  bool named = false;
  std::istringstream words(setting);
  for (std::string word; std::getline(words, word, ',');) {
    const auto is_named = [&](const UcxDevice& device) {
      return device.network && ::fnmatch(word.c_str(), device.name.c_str(), 0) == 0;
    };
    if (word == "all" || std::any_of(devices.begin(), devices.end(), is_named)) {
      return false;
    }
    named = named || !word.empty();
  }
  return named;
}

std::string fabric_fault(const std::string& what, const std::vector<UcxDevice>& devices) {
  return fmt::format(
      "{}: {}, {}; this host has {}. Set UCX_TLS and UCX_NET_DEVICES to transports and devices "
      "that every host has, or unset both. To use TCP alone, set UCX_TLS=tcp,self; for MPI itself, "
      "set OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self; and if a host has several networks, set "
      "UCX_NET_DEVICES=<the interface that reaches the others>",
      what, setting_of("UCX_TLS"), setting_of("UCX_NET_DEVICES"), describe(devices));
}

}  // namespace trireme
