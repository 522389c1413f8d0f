#include "src/evidence/folder_materials.h"

#include <system_error>

#include "src/base/provenance_name.h"
#include "src/evidence/bundle.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;

std::string stated_path(const fs::path& path) {
  const fs::path plain = fs::absolute(path).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).string();
}

std::string stated_uri(const fs::path& path) { return file_uri(stated_path(path)); }

Material manifest_material(const std::string& name, const fs::path& folder,
                           const std::string& manifest_sha256) {
  return {name, stated_uri(folder / kManifestSubject), manifest_sha256};
}

std::vector<Material> folder_materials(const std::string& name, const fs::path& folder,
                                       const std::string& manifest_sha256) {
  std::vector<Material> materials = {manifest_material(name, folder, manifest_sha256)};
  const fs::path path = folder / kProvenanceName;
  std::error_code code;
  if (fs::exists(fs::symlink_status(path, code))) {
    materials.push_back(
        {name + std::string(kProvenanceSuffix), stated_uri(path), digest_file(path).sha256});
  }
  return materials;
}

}  // namespace trireme
