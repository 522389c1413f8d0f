#include "benchmarks/io/metadata.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "benchmarks/io/io_descriptor.h"
#include "benchmarks/io/io_phase.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// An operation on every file, or every folder, of a rank.
struct MetadataOperation {
  const char* name;        // in the JSON document
  const char* mdtest;      // in mdtest's table
  bool of_others = false;  // looks at another rank's with -C
  void (*run)(const std::string& path, std::int64_t bytes, int rank, std::int64_t i);
};

void demand(int code, const char* what, const std::string& path) {
  if (code < 0) {
    throw_errno(errno, what, path);
  }
}

// The contents of file i: the numbers of the rank and of the file, and zeros.
std::vector<std::int64_t> contents(std::int64_t bytes, int rank, std::int64_t i) {
  std::vector<std::int64_t> words(static_cast<std::size_t>((bytes + 7) / 8), 0);
  if (words.size() > 1) {
    words[0] = rank;
    words[1] = i;
  }
  return words;
}

void create_file(const std::string& path, std::int64_t bytes, int rank, std::int64_t i) {
  IoDescriptor file;
  file.open({.path = path, .writes = true});
  if (bytes > 0) {
    std::vector<std::int64_t> data = contents(bytes, rank, i);
    IoTransfer rest{0, reinterpret_cast<char*>(data.data()), bytes};
    while (rest.bytes > 0) {
      const ssize_t done =
          ::pwrite(file.fd(), rest.data, static_cast<std::size_t>(rest.bytes), rest.offset);
      file.advance(rest, done < 0 ? -errno : done);
    }
  }
  file.close();
}

void stat_file(const std::string& path, std::int64_t bytes, int /*rank*/, std::int64_t /*i*/) {
  struct stat about {};
  demand(::stat(path.c_str(), &about), "stat", path);
  if (about.st_size != bytes) {
    throw IoError(fmt::format("{} has {} bytes, but {} were written", path, about.st_size, bytes));
  }
}

void read_small_file(const std::string& path, std::int64_t bytes, int rank, std::int64_t i) {
  IoDescriptor file;
  file.open({.path = path});
  if (bytes > 0) {
    std::vector<std::int64_t> data(static_cast<std::size_t>((bytes + 7) / 8), 0);
    IoTransfer rest{0, reinterpret_cast<char*>(data.data()), bytes};
    while (rest.bytes > 0) {
      const ssize_t done =
          ::pread(file.fd(), rest.data, static_cast<std::size_t>(rest.bytes), rest.offset);
      file.advance(rest, done < 0 ? -errno : done);
    }
    if (data != contents(bytes, rank, i)) {
      throw DeviceError(fmt::format("{}: the file came back with wrong contents", path));
    }
  }
  file.close();
}

void remove_file(const std::string& path, std::int64_t, int, std::int64_t) {
  demand(::unlink(path.c_str()), "remove", path);
}
void create_folder(const std::string& path, std::int64_t, int, std::int64_t) {
  demand(::mkdir(path.c_str(), 0700), "create", path);
}
void stat_folder(const std::string& path, std::int64_t, int, std::int64_t) {
  struct stat about {};
  demand(::stat(path.c_str(), &about), "stat", path);
  if (!S_ISDIR(about.st_mode)) {
    throw IoError(fmt::format("{} is no folder any more", path));
  }
}
void remove_folder(const std::string& path, std::int64_t, int, std::int64_t) {
  demand(::rmdir(path.c_str()), "remove", path);
}

constexpr std::array<MetadataOperation, kMetadataOperations> kOperations = {
    MetadataOperation{"create_folder", "Directory creation", false, create_folder},
    MetadataOperation{"stat_folder", "Directory stat", true, stat_folder},
    MetadataOperation{"remove_folder", "Directory removal", false, remove_folder},
    MetadataOperation{"create_file", "File creation", false, create_file},
    MetadataOperation{"stat_file", "File stat", true, stat_file},
    MetadataOperation{"read_file", "File read", true, read_small_file},
    MetadataOperation{"remove_file", "File removal", false, remove_file}};
constexpr std::size_t kFirstOfFiles = 3;

class MetadataBench {
 public:
  MetadataBench(const BenchIoOptions& options, const fs::path& folder, int shift,
                MpiSession& session, TableProgress& progress)
      : options_(options),
        session_(session),
        progress_(progress),
        rank_(session.world().rank()),
        other_((rank_ + shift) % session.world().size()) {
    folder_ = folder / "metadata";
    std::error_code exists;
    fs::create_directory(folder_, exists);
    if (options.own_folders) {
      fs::create_directory(place_of(rank_), exists);
    }
  }

  // The times of all ranks, by operation, repetition and rank, in seconds.
  std::array<std::vector<double>, kOperations.size()> run() {
    std::array<std::vector<double>, kOperations.size()> seconds;
    for (Sampling sampling(rule(), &session_.world()); sampling.more(seconds[0].size());) {
      for (std::size_t i = 0; i < kOperations.size(); ++i) {
        progress_.measuring(kOperations[i].mdtest);
        seconds[i].push_back(phase(kOperations[i], i >= kFirstOfFiles));
        progress_.done();
      }
    }
    return seconds;
  }

  StopRule rule() const {
    return StopRule::count_or_duration(options_.repetitions, options_.duration);
  }

 private:
  fs::path place_of(int rank) const {
    return options_.own_folders ? folder_ / std::to_string(rank) : folder_;
  }

  double phase(const MetadataOperation& operation, bool files) {
    const int whose = operation.of_others ? other_ : rank_;
    std::string path =
        (place_of(whose) / fmt::format("{}.{}.", files ? "file" : "dir", whose)).string();
    const std::size_t stem = path.size();
    const IoClock clock(session_);
    IoSpan span{clock.seconds(), 0};
    for (std::int64_t i = 0; i < options_.files; ++i) {
      path.resize(stem);
      path += fmt::format_int(i).c_str();
      operation.run(path, options_.file_bytes, whose, i);
    }
    span.end = clock.seconds();
    return duration_of(span, session_.world());
  }

  const BenchIoOptions& options_;
  MpiSession& session_;
  TableProgress& progress_;
  int rank_;
  int other_;
  fs::path folder_;
};

}  // namespace

std::string mdtest_summary(const std::vector<std::pair<std::string, std::vector<double>>>& rates) {
  std::string text = fmt::format(
      "\nSUMMARY rate (in ops/sec): (of {} iterations)\n"
      "   Operation                     Max            Min           Mean        Std Dev\n"
      "   ---------                     ---            ---           ----        -------\n",
      rates.front().second.size());
  for (const auto& [name, values] : rates) {
    double sum = 0;
    for (const double value : values) {
      sum += value;
    }
    const auto count = static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) {
      squares += (value - sum / count) * (value - sum / count);
    }
    text += fmt::format("   {:<18} {:14.3f} {:14.3f} {:14.3f} {:14.3f}\n", name,
                        *std::max_element(values.begin(), values.end()),
                        *std::min_element(values.begin(), values.end()), sum / count,
                        count > 1 ? std::sqrt(squares / (count - 1)) : 0);
  }
  return text;
}

Json bench_metadata(const BenchIoOptions& options, const fs::path& folder, int shift,
                    const Json& common, MpiSession& session, TableProgress& progress) {
  MetadataBench bench(options, folder, shift, session, progress);
  const auto seconds = bench.run();
  const double items = static_cast<double>(options.files) * session.world().size();
  std::vector<std::pair<std::string, std::vector<double>>> rates;
  Json results = Json::array();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::vector<double>& own =
        rates.emplace_back(kOperations[i].mdtest, std::vector<double>()).second;
    for (const double each : seconds[i]) {
      own.push_back(items / each);
    }
    const MedianInterval interval = median_interval(own);
    Json params = common;
    params["operation"] = kOperations[i].name;
    params["files_per_rank"] = options.files;
    params["file_bytes"] = options.file_bytes;
    params["folders"] = options.own_folders ? "rank" : "shared";
    params["shift"] = shift;
    params["rounds"] = own.size();
    results.push_back(
        {{"name", "io_metadata"},
         {"params", params},
         {"metrics",
          {{"operations_per_s", interval.median},
           {"operations_per_s_low", interval.low},
           {"operations_per_s_high", interval.high}}},
         {"measurement", to_json({.warmup = 0,
                                  .stop = bench.rule(),
                                  .sample = "all operations of all ranks, from the first begin to "
                                            "the last end",
                                  .synchronized_by = "two barriers"})},
         {"samples", {{"time_ms", samples_json(multiplied(seconds[i], 1e3), {})}}}});
  }
  progress.print(mdtest_summary(rates));
  return results;
}

}  // namespace trireme
