#include "src/interchange/draft_folder.h"

#include <exception>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

DraftFolder::DraftFolder(Communicator& world, fs::path final)
    : rank_(world.rank()), final_(final.has_filename() ? std::move(final) : final.parent_path()) {
  draft_ = run_on_root(world, [&] {
    const fs::path absolute = fs::absolute(final_);
    if (fs::exists(fs::symlink_status(absolute))) {
      throw PolicyError(
          fmt::format("--out {} exists: choose another name, or remove it first", final_.string()));
    }
    make_directories(absolute.parent_path());
    const fs::path draft = absolute.parent_path() /
                           fmt::format(".{}.draft-{}", absolute.filename().string(), ::getpid());
    remove_tree(draft);
    make_directories(draft);
    return draft.string();
  });
}

DraftFolder::~DraftFolder() {
  if (rank_ == 0 && !draft_.empty()) {
    std::error_code ignored;
    fs::remove_all(draft_, ignored);
  }
}

void DraftFolder::keep() {
  sync_directory(draft_);
  rename_durably(draft_, fs::absolute(final_));
  draft_.clear();
}

void write_whole_file(const std::filesystem::path& path, const std::string& text) {
  File file = File::create_new(path);
  file.write(text.data(), std::ssize(text));
  file.sync();
  file.close();
}

void share_work(Communicator& world, std::int64_t count,
                const std::function<void(std::int64_t)>& work) {
  std::exception_ptr own;
  std::string fault;
  try {
    for (std::int64_t i = world.rank(); i < count; i += world.size()) {
      work(i);
    }
  } catch (const Error& error) {
    own = std::current_exception();
    fault = error.what();
  }
  const std::string faults = gather_faults(world, fault);
  if (own != nullptr) {
    std::rethrow_exception(own);
  }
  if (!faults.empty()) {
    throw DataError(faults);
  }
}

}  // namespace trireme
