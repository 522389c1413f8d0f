// Opens a path that should be a regular file. With a FIFO, socket, device or directory in its
// place, open() or read() could block forever, or return something other than a file's contents.
// Every file of a run, dataset or checkpoint is opened here, most of them through src/base/file.h;
// HDF5, which opens files itself, does so only after this function has. Streams that a user names
// on purpose, such as /dev/stdin or a pipe with a list of paths, are read without it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme {

// Calls open(2) with O_CLOEXEC and mode 0644. Returns the descriptor, or -1 with errno. If the path
// is not a regular file, throws DataError if it was to be read, and PolicyError if it was to be
// written. Throws PolicyError for a symbolic link if flags contain O_NOFOLLOW.
int open_regular(const std::filesystem::path& path, int flags);

// Reads from an open file until it ends or `most_bytes` are read. The path is for messages.
std::string read_to_end(int fd, std::int64_t most_bytes, const std::filesystem::path& path);

}  // namespace trireme
