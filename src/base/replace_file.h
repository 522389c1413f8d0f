// Replaces a small file that other programs poll, such as node_exporter. Readers see the old or the
// new contents. The contents are not synced to the disk, since they are soon replaced again.
#pragma once

#include <filesystem>
#include <string_view>

namespace trireme {

// Writes `.NAME.tmp` beside the path, readable by everybody, and renames it over the path. Throws
// PolicyError if the path exists and is no regular file, and IoError, NotFound or PolicyError if it
// cannot be written.
void replace_text_file(const std::filesystem::path& path, std::string_view contents);

}  // namespace trireme
