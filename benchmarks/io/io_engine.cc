#include "benchmarks/io/io_engine.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "benchmarks/io/io_descriptor.h"
#include "io/h5/h5_bytes.h"
#include "src/base/error.h"

namespace trireme {
namespace {

class PosixEngine : public IoEngine {
 public:
  void open(const IoOpening& how) override { file_.open(how); }

  void submit(int /*slot*/, const IoTransfer& transfer) override {
    IoTransfer rest = transfer;
    while (rest.bytes > 0) {
      const auto size = static_cast<std::size_t>(rest.bytes);
      const ssize_t done = file_.writes() ? ::pwrite(file_.fd(), rest.data, size, rest.offset)
                                          : ::pread(file_.fd(), rest.data, size, rest.offset);
      file_.advance(rest, done < 0 ? -errno : done);
    }
  }
  int complete() override { return 0; }
  void sync() override { file_.sync(); }
  void close() override { file_.close(); }

 private:
  IoDescriptor file_;
};

class Hdf5Engine : public IoEngine {
 public:
  void open(const IoOpening& how) override {
    writes_ = how.writes;
    file_.emplace(writes_ ? H5Bytes::create(how.path, how.bytes) : H5Bytes::open(how.path));
  }
  void submit(int /*slot*/, const IoTransfer& transfer) override {
    if (writes_) {
      file_->write(transfer.offset, transfer.data, transfer.bytes);
    } else {
      file_->read(transfer.offset, transfer.data, transfer.bytes);
    }
  }
  int complete() override { return 0; }
  void sync() override { file_->sync(); }
  void close() override {
    file_->close();
    file_.reset();
  }

 private:
  bool writes_ = false;
  std::optional<H5Bytes> file_;
};

}  // namespace

IoApi parse_io_api(std::string_view name) {
  for (const auto& [text, api] :
       {std::pair{"posix", IoApi::posix}, {"uring", IoApi::uring}, {"hdf5", IoApi::hdf5}}) {
    if (name == text) {
      return api;
    }
  }
  throw ConfigError(fmt::format("--api {}: choose posix, uring or hdf5", name));
}

std::string_view ior_name_of(IoApi api) {
  return api == IoApi::posix ? "POSIX" : api == IoApi::uring ? "URING" : "HDF5";
}

std::unique_ptr<IoEngine> make_io_engine(IoApi api, int depth) {
  switch (api) {
    case IoApi::posix:
      return std::make_unique<PosixEngine>();
    case IoApi::uring:
      return make_uring_engine(depth);
    case IoApi::hdf5:
      return std::make_unique<Hdf5Engine>();
  }
  throw InternalError("no such interface");
}

void evict_from_cache(const std::filesystem::path& path) {
  IoDescriptor file;
  file.open({.path = path.string()});
  file.sync();
  if (const int code = ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED); code != 0) {
    throw_errno(code, "evict", path);
  }
  file.close();
}

}  // namespace trireme
