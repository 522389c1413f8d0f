#include "src/base/private_file.h"

#include <cerrno>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {

PrivateFile::PrivateFile(const std::filesystem::path& path, std::int64_t most_bytes,
                         std::string_view what)
    : path_(path), what_(what) {
  forbid_core_files();
  std::error_code failure;
  if (std::filesystem::status(path, failure).type() == std::filesystem::file_type::not_found) {
    throw NotFound(fmt::format("{}: no such file, where {} is expected: correct the path",
                               printable(path.string()), what));
  }
  const File file = File::open_to_read(path);
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) {
    throw_errno(errno, "stat", path);
  }
  mode_ = status.st_mode & 07777U;
  owner_ = status.st_uid;
  text_.resize(static_cast<std::size_t>(most_bytes + 1));
  text_.resize(static_cast<std::size_t>(file.read_at(0, text_.data(), most_bytes + 1)));
  if (std::ssize(text_) > most_bytes) {
    throw DataError(fmt::format("{}: more than {} bytes, too long for {}: correct the path",
                                printable(path.string()), most_bytes, what));
  }
}

PrivateFile::~PrivateFile() { OPENSSL_cleanse(text_.data(), text_.size()); }

void PrivateFile::check_owner_only() const {
  if ((mode_ & 077U) != 0) {
    throw PolicyError(fmt::format(
        "{} is {} that others can use (mode {:04o}): chmod 600 it, and replace the {} if they may "
        "have read it",
        printable(path_.string()), what_, mode_, what_.substr(what_.find(' ') + 1)));
  }
  if (owner_ != 0 && owner_ != ::geteuid()) {
    throw PolicyError(
        fmt::format("{} is {} of user {}, and this is user {}: use one of this user "
                    "or of root",
                    printable(path_.string()), what_, owner_, ::geteuid()));
  }
}

void forbid_core_files() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
}

void write_private_file(const std::filesystem::path& path, std::string_view text) {
  const UniqueHandle<FileDescriptorTraits> fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) {
    if (errno == EEXIST) {
      throw PolicyError(
          fmt::format("{} exists: a key is never overwritten; choose another name", path.string()));
    }
    throw_errno(errno, "create", path);
  }
  const ssize_t put = ::write(fd.get(), text.data(), text.size());
  const int code = put < 0 ? errno : ENOSPC;
  if (put != std::ssize(text) || ::fsync(fd.get()) != 0) {
    ::unlink(path.c_str());
    throw_errno(code, "write", path);
  }
}

}  // namespace trireme
