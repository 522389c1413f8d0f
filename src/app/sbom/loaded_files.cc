#include "src/app/sbom/loaded_files.h"

#include <filesystem>
#include <map>
#include <string_view>

#include <link.h>

namespace trireme {
namespace {

// Returns the DT_SONAME of a loaded object. The dynamic linker replaces the offset of the string
// table by its address, unless the object's dynamic section is read-only.
std::string soname_of(const dl_phdr_info& object) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    }
  }
  ElfW(Addr) strings = 0;
  ElfW(Addr) name = 0;
  bool named = false;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) {
      strings = entry->d_un.d_ptr;
    } else if (entry->d_tag == DT_SONAME) {
      name = entry->d_un.d_val;
      named = true;
    }
  }
  if (strings < object.dlpi_addr) {
    strings += object.dlpi_addr;
  }
  return named ? reinterpret_cast<const char*>(strings + name) : "";
}

using Files = std::map<std::string, std::string>;  // the SONAME by path

int note(dl_phdr_info* object, std::size_t, void* to) {
  const std::string_view name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
  // The program has no name here, and the vdso is not a path.
  if (name.find('/') != std::string_view::npos) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(name, error);
    static_cast<Files*>(to)->try_emplace(
        error ? std::filesystem::absolute(name).string() : path.string(), soname_of(*object));
  }
  return 0;
}

}  // namespace

std::vector<LoadedFile> loaded_files() {
  Files files;
  ::dl_iterate_phdr(note, &files);
  std::vector<LoadedFile> sorted;
  for (const auto& [path, soname] : files) {
    sorted.push_back({path, soname});
  }
  return sorted;
}

}  // namespace trireme
