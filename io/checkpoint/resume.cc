#include "io/checkpoint/resume.h"

#include <sstream>

#include <fmt/ranges.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Rank 0's list of what is still to be tried.
class Candidates {
 public:
  Candidates(const fs::path& folder, std::optional<std::int64_t> only) : folder_(folder) {
    for (StepFolder& step : list_steps(folder)) {
      if (only && step.path.filename() != step_folder_name(*only)) {
        continue;
      }
      any_ = true;
      check_readable(step);
      if (step.manifest) {
        steps_.push_back(std::move(step));
      } else {
        skipped_.push_back(step.problem);
      }
    }
    if (only && !any_) {
      throw NotFound(fmt::format("{} has no {}", folder.string(), step_folder_name(*only)));
    }
  }

  // The next one as "<folder>\n<manifest>"; "" if there never was any; DataError if none is left.
  std::string next() {
    if (next_ < steps_.size()) {
      const StepFolder& step = steps_[next_++];
      return step.path.string() + "\n" + to_text(*step.manifest);
    }
    if (!any_) {
      return "";
    }
    throw DataError(fmt::format(
        "{} holds checkpoints, but none is valid:\n  {}\nRestore one; or, to start from the "
        "beginning, remove {} or choose another checkpoint.dir",
        folder_.string(), fmt::join(skipped_, "\n  "), folder_.string()));
  }

  void skip(const std::string& reason) { skipped_.push_back(reason); }
  std::string skipped() const { return fmt::format("{}", fmt::join(skipped_, "\n")); }

 private:
  fs::path folder_;
  std::vector<StepFolder> steps_;
  std::vector<std::string> skipped_;
  std::size_t next_ = 0;
  bool any_ = false;
};

// ConfigError on all ranks if it is one on any.
void check_fits(Communicator& comm, const CheckpointReader& reader,
                std::span<const BlockRequest> requests, const ResumeOptions& options) {
  std::string fault;
  try {
    if (options.accept) {
      options.accept(reader.manifest());
    }
    const std::vector<std::string> lines = reader.mismatches(requests);
    if (!lines.empty()) {
      fault = fmt::format("{} does not fit this run:\n  {}", reader.folder().string(),
                          fmt::join(lines, "\n  "));
    }
  } catch (const ConfigError& e) {
    fault = e.what();
  }
  const std::string all = gather_faults(comm, fault);
  if (!all.empty()) {
    throw ConfigError(fault.empty() ? all : fault);
  }
}

// What keeps any rank from using it; "" if nothing does. PolicyError on all ranks if one may not
// read it: that is no damage.
std::string try_to_load(Communicator& comm, const CheckpointReader& reader,
                        std::span<const BlockRequest> requests, LoadStats& stats) {
  std::string refusal;
  std::string fault;
  try {
    stats = reader.load(requests);
  } catch (const PolicyError& e) {
    refusal = e.what();
  } catch (const Error& e) {
    fault = e.what();
  }
  const std::string refused = gather_faults(comm, refusal);
  if (!refused.empty()) {
    throw PolicyError(refused);
  }
  return gather_faults(comm, fault);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::optional<Resumed> resume(Communicator& comm, const fs::path& folder,
                              std::span<const BlockRequest> requests,
                              const ResumeOptions& options) {
  std::optional<Candidates> candidates;
  run_on_root(comm, [&] {
    candidates.emplace(folder, options.step);
    return std::string();
  });
  while (true) {
    const std::string text = run_on_root(comm, [&] { return candidates->next(); });
    if (text.empty()) {
      return std::nullopt;
    }
    const std::size_t end = text.find('\n');
    const CheckpointReader reader(
        text.substr(0, end),
        parse_manifest(std::string_view(text).substr(end + 1), text.substr(0, end)), options.io);
    check_fits(comm, reader, requests, options);
    LoadStats stats;
    const std::string fault = try_to_load(comm, reader, requests, stats);
    if (fault.empty()) {
      const std::string skipped = run_on_root(comm, [&] { return candidates->skipped(); });
      return Resumed{reader.folder(), reader.manifest(), lines_of(skipped), stats};
    }
    if (candidates) {
      candidates->skip(fault);
    }
  }
}

}  // namespace trireme
