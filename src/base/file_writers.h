// Who can change a file that decides something for others, such as what is recorded or which code
// runs. Mistakes in permissions are found here; whoever may change them could also hide that.
#pragma once

#include <filesystem>
#include <string_view>

namespace trireme {

enum class FileWriters { owner, group, everybody };

// Follows links. Returns `owner` also for what cannot be looked at, whose reader fails by itself.
FileWriters writers_of(const std::filesystem::path& path);

// Throws PolicyError if everybody can write to the file or folder. why: what they could do with
// that, such as "turn off the audit log".
void refuse_if_all_can_write(const std::filesystem::path& path, std::string_view why);

}  // namespace trireme
