// Opening a path that should be a regular file. A FIFO, socket, device or directory in its place
// would otherwise make open() or read() wait for ever, or return something that is no file's
// content. Every file of a run, dataset or checkpoint is opened here (most through
// src/base/file.h). Streams that a user names on purpose, such as /dev/stdin, are read with
// std::istream instead.
#pragma once

#include <filesystem>

namespace trireme {

// open(2) with O_CLOEXEC and mode 0644; returns the descriptor, or -1 with errno. Anything but a
// regular file is refused: DataError if it was to be read, PolicyError if it was to be written.
int open_regular(const std::filesystem::path& path, int flags);

}  // namespace trireme
