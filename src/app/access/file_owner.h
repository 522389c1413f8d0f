// Keeps the owner and the permissions of a file that a command replaces. The folder may belong to
// others, who can put something else in the place of the new file meanwhile: links are not
// followed, and neither are files with other names or of other users changed.
#pragma once

#include <filesystem>
#include <optional>

#include <sys/types.h>

namespace trireme {

struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
  mode_t mode = 0;  // permissions only
};

// Returns nothing if there is no regular file.
std::optional<FileOwner> owner_of(const std::filesystem::path& path);
// Gives the owner and the permissions to a file that this process has made, as far as the system
// permits that.
void give_owner(const std::filesystem::path& path, const FileOwner& owner) noexcept;

}  // namespace trireme
