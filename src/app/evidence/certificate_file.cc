#include "src/app/evidence/certificate_file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_kind.h"
#include "src/base/named_file.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

fs::path with_suffix(const fs::path& path, const char* suffix) { return path.string() + suffix; }

bool is_there(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }

// Returns whether it is an empty file, which an earlier version left when it was interrupted.
bool is_empty_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(fs::symlink_status(path, code)) && fs::file_size(path, code) == 0 &&
         !code;
}

// Returns whether the open file, without other names, is the one that has this name.
bool is_at(const File& file, const fs::path& path) {
  struct stat open_one {};
  struct stat named {};
  return ::fstat(file.fd(), &open_one) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino &&
         S_ISREG(named.st_mode) && named.st_nlink == 1;
}

Erasure read_own_draft(const fs::path& path, const SigningKey& key) {
  std::string why = other_than_file(path);
  if (why.empty()) {
    try {
      const SignedErasure made =
          parse_draft(read_file(path, kMostCertificateBytes), path.string(), {{key.public_key()}});
      if (made.signature.state == SignatureState::trusted) {
        return made.erasure;
      }
      why = fmt::format("signed by {}, not by the key that is to sign the certificate",
                        made.signature.signer());
    } catch (const DataError& error) {
      why = fmt::format("not what `trireme erase` writes there ({})", error.what());
    }
  }
  throw PolicyError(
      fmt::format("nothing was erased, because {} would be the draft of the certificate, and is "
                  "{}: choose another name for the certificate",
                  printable(path.string()), why));
}

// Returns the certificate of the erasure that a draft describes, if it was written.
std::optional<Erasure> read_own_certificate(const fs::path& path, const SigningKey& key,
                                            const Erasure& draft) {
  if (!is_there(path) || !other_than_file(path).empty()) {
    return std::nullopt;
  }
  try {
    SignedErasure made = parse_certificate(read_file(path, kMostCertificateBytes), path.string(),
                                           {{key.public_key()}});
    if (made.signature.state == SignatureState::trusted && made.erasure.uri == draft.uri &&
        made.erasure.started == draft.started) {
      return std::move(made.erasure);
    }
  } catch (const DataError&) {
    // Another file, which check_place() refuses.
  }
  return std::nullopt;
}

}  // namespace

CertificateFile::CertificateFile(const fs::path& path, const SigningKey& key)
    : path_(fs::absolute(path).lexically_normal()),
      draft_path_(with_suffix(path_, ".draft")),
      room_path_(with_suffix(path_, ".room")),
      key_(key) {
  if (!is_there(draft_path_)) {
    return;
  }
  draft_ = read_own_draft(draft_path_, key);
  finished_ = read_own_certificate(path_, key, *draft_);
  if (finished_) {
    draft_.reset();
    fs::remove(draft_path_);
  }
}

void CertificateFile::check_place(const fs::path& folder) const {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(path_, none);
  const auto [in_plan, in_path] =
      std::mismatch(folder.begin(), folder.end(), place.begin(), place.end());
  if (in_plan == folder.end()) {
    throw ConfigError(
        fmt::format("--certificate: {} lies in the folder that is erased", path_.string()));
  }
  if (is_there(path_) && !is_empty_file(path_)) {
    throw PolicyError(fmt::format(
        "--certificate: {} exists, and a certificate replaces no file: choose another name",
        path_.string()));
  }
  if (!draft_ && is_there(room_path_)) {
    throw PolicyError(fmt::format(
        "--certificate: {} exists, where the certificate is to be prepared: remove it, or choose "
        "another name",
        printable(room_path_.string())));
  }
  check_named_file(path_, "--certificate");
}

void CertificateFile::begin(const Erasure& erasure) {
  const bool is_new = !draft_.has_value();
  try {
    if (is_new || draft_->overwritten != erasure.overwritten) {
      write_file_durably(draft_path_, draft_text(erasure, key_));
    }
    take_room(most_certificate_bytes(erasure));
  } catch (...) {
    if (is_new) {
      std::error_code ignored;
      fs::remove(draft_path_, ignored);
      fs::remove(room_path_, ignored);
    }
    throw;
  }
}

// The blanks are written, because file systems need not keep a mere reservation.
void CertificateFile::take_room(std::int64_t bytes) {
  if (is_there(room_path_) && other_than_file(room_path_).empty()) {
    room_ = File::open_to_update(room_path_);
    if (is_at(*room_, room_path_) && room_->size() >= bytes) {
      return;
    }
    room_.reset();
  }
  fs::remove(room_path_);
  room_ = File::create_new(room_path_);
  const std::string blanks(static_cast<std::size_t>(bytes), ' ');
  room_->write_at(0, blanks.data(), bytes);
  room_->sync();
  sync_directory(room_path_.parent_path());
}

void CertificateFile::finish(const std::string& text) {
  room_->write_at(0, text.data(), std::ssize(text));
  if (::ftruncate(room_->fd(), static_cast<off_t>(text.size())) != 0) {
    throw_errno(errno, "cut", room_path_);
  }
  room_->sync();
  if (!is_at(*room_, room_path_)) {
    throw PolicyError(
        fmt::format("{} was exchanged meanwhile, so that there is no certificate yet: give the "
                    "same command again",
                    printable(room_path_.string())));
  }
  if (is_empty_file(path_)) {
    fs::remove(path_);
  }
  rename_durably(room_path_, path_);
  fs::remove(draft_path_);
  sync_directory(path_.parent_path());
}

}  // namespace trireme
