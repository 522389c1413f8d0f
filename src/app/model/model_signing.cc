#include "src/app/model/model_signing.h"

#include <memory>
#include <vector>

#include "io/checkpoint/workers.h"
#include "mpi/agreement.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/evidence/file_digests.h"
#include "src/interchange/draft_folder.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns the digests of all files in the folder.
std::vector<Subject> files_to_sign(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) {
      paths.push_back(entry.path());
    }
  }
  const std::vector<FileDigest> digests = digest_files(paths, available_processors());
  std::vector<Subject> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (digests[i].sha256.empty()) {
      throw IoError(digests[i].trouble);
    }
    files.push_back({paths[i].lexically_relative(folder).string(), digests[i].sha256});
  }
  return files;
}

std::string name_of_folder(const fs::path& out) {
  const fs::path plain = fs::absolute(out).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

}  // namespace

std::function<void(const fs::path& folder, const StepFolder& step)> model_signer(
    const std::string& key, const fs::path& out, Communicator& world) {
  if (key.empty()) {
    return {};
  }
  std::shared_ptr<const SigningKey> loaded;
  run_on_root(world, [&]() -> std::string {
    loaded = std::make_shared<const SigningKey>(SigningKey::load(key));
    check_signs_models(*loaded);
    return "";
  });
  return [loaded, out](const fs::path& folder, const StepFolder& step) {
    ModelStatement statement;
    statement.name = name_of_folder(out);
    statement.files = files_to_sign(folder);
    statement.checkpoint = step.manifest_sha256;
    statement.step = step.manifest->meta.step;
    statement.finished = utc_now();
    write_whole_file(folder / kModelSignatureName,
                     model_signature_text(std::move(statement), *loaded));
  };
}

}  // namespace trireme
