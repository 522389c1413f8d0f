// Runs a part of a test as a user to whom file permissions apply, since root ignores them. This
// changes the whole process, so no other thread may need root meanwhile.
#pragma once

#include <filesystem>

#include <unistd.h>

namespace trireme {

class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0), bound_(!was_root_ || ::seteuid(kNobody) == 0) {}
  ~Unprivileged() {
    if (was_root_ && bound_ && ::seteuid(0) != 0) {
      ::_exit(1);
    }
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  // Returns whether permissions apply. If not, the test prints that and skips.
  bool bound() const { return bound_; }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_;
  bool bound_;
};

// Makes everything below the folder readable for everybody, except the one file.
inline void forbid_reading(const std::filesystem::path& folder, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  const auto open_up = [](const fs::path& path) {
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  };
  open_up(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    open_up(entry.path());
  }
  fs::permissions(file, fs::perms::none);
}

}  // namespace trireme
