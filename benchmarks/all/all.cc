#include "benchmarks/all/all.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

#include "benchmarks/all/budget.h"
#include "benchmarks/all/questions.h"
#include "benchmarks/all/time_guard.h"
#include "benchmarks/io/io_folder.h"
#include "benchmarks/muted_output.h"
#include "benchmarks/scratch_folders.h"
#include "src/base/error.h"
#include "src/base/interruption.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// The fraction of its share in which a question measures; the rest is for preparations.
constexpr double kMeasuredPart = 0.6;
// The fraction of all time that questions get; the rest is for what takes longer than planned.
constexpr double kPlannedPart = 0.9;
constexpr double kReportSeconds = 2;  // before the deadline, for writing what there is
constexpr std::chrono::seconds kRemovalPatience{
    1};  // part of kReportSeconds: removing scratch folders
// How long the other ranks wait after a signal while the first one writes the results: mpirun and
// srun kill all ranks soon after one has ended.
constexpr std::chrono::seconds kLeadOfFirstRank{10};
constexpr std::chrono::seconds kPatienceWithGuard{20};

class AllBench {
 public:
  AllBench(const BenchAllOptions& options, AppContext& context,
           const std::function<int(const std::vector<Answer>&)>& at_end)
      : options_(options),
        world_(context.session().world()),
        questions_(chosen(questions_for(context, options.folder), options.only)),
        at_end_(at_end),
        guard_(std::chrono::duration<double>(60 * options.minutes - kReportSeconds),
               [this](int signal_number) { end(signal_number); }) {
    ScratchFolders::leave_end_to_another(true);
  }
  ~AllBench() { ScratchFolders::leave_end_to_another(false); }
  AllBench(const AllBench&) = delete;
  AllBench& operator=(const AllBench&) = delete;

  std::vector<Answer> run();

 private:
  // Ends the process before all questions have been asked. signal_number: 0 at the deadline.
  [[noreturn]] void end(int signal_number);
  // share: the seconds for the question, preparations included.
  Answer ask(const Question& question, double share, double for_sizes);

  const BenchAllOptions& options_;
  Communicator& world_;
  std::vector<Question> questions_;
  Stopwatch watch_;
  MeasuredRows rows_;  // of the question that is being asked
  std::mutex mutex_;   // guards the next two
  std::vector<Answer> answers_;
  std::optional<MutedOutput> muted_;
  std::function<int(const std::vector<Answer>&)> at_end_;
  TimeGuard guard_;  // declared last, so that it ends before what it uses
};

void AllBench::end(int signal_number) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Question& question : questions_) {
    names.push_back(question.name);
  }
  const std::string why = signal_number == 0
                              ? "did not end in time"
                              : fmt::format("was interrupted by signal {}", signal_number);
  if (muted_) {
    muted_->restore();
  }
  const int code = at_end_(with_unanswered(answers_, names, why, watch_.seconds(), rows_.all()));
  ScratchFolders::remove_before_exit(kRemovalPatience);
  std::fflush(nullptr);
  if (signal_number == 0) {
    ::_exit(code);
  }
  if (world_.rank() != 0) {
    std::this_thread::sleep_for(kLeadOfFirstRank);
  }
  end_by_signal(signal_number);
}

std::vector<Answer> AllBench::run() {
  std::vector<double> weights;
  for (const Question& question : questions_) {
    weights.push_back(question.weight);
  }
  const Budget budget(weights, kPlannedPart * 60 * options_.minutes);
  for (std::size_t i = 0; i < questions_.size(); ++i) {
    const double elapsed = all_reduce_value(world_, watch_.seconds(), ReduceOp::max);
    const double share = budget.share(i, elapsed);
    if (world_.rank() == 0) {
      say(fmt::format("bench all: {} ({} of {}), {:.0f} s", questions_[i].name, i + 1,
                      questions_.size(), share));
    }
    Answer answer = ask(questions_[i], share, budget.for_sizes(i, elapsed));
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    rows_.begin();
  }
  return answers_;
}

Answer AllBench::ask(const Question& question, double share, double for_sizes) {
  if (share < question.least_seconds) {
    return {
        question.name, 0, Json::array(),
        fmt::format("left out: {:.1f} s are left for it, and it needs {:g}; give more --minutes",
                    share, question.least_seconds)};
  }
  {
    const std::lock_guard lock(mutex_);
    if (!options_.verbose) {
      muted_.emplace();
    }
  }
  const Stopwatch watch;
  Answer answer{question.name, 0, Json::array(), ""};
  try {
    QuestionResults found =
        question.ask({kMeasuredPart * share, kMeasuredPart * for_sizes, &rows_});
    answer.results = std::move(found.results);
    answer.left_out = std::move(found.left_out);
    answer.seconds = watch.seconds();
  } catch (const DeviceError&) {
    throw;  // wrong results: the machine must not be used
  } catch (const DiskTooSmall& error) {
    answer = failed_answer(question.name, watch.seconds(), error.what(), std::current_exception());
  } catch (const IoError& error) {
    if (world_.size() > 1) {
      throw;  // the other ranks would wait for this one
    }
    answer = failed_answer(question.name, watch.seconds(), error.what(), std::current_exception());
  } catch (const Error& error) {
    answer = failed_answer(question.name, watch.seconds(), error.what(), std::current_exception());
  }
  if (interruption() != 0) {
    // The guard is about to end the process. The question may have failed only because its folder
    // was removed, so its answer must not be kept.
    std::this_thread::sleep_for(kPatienceWithGuard);
  }
  const std::lock_guard lock(mutex_);
  muted_.reset();
  return answer;
}

}  // namespace

std::vector<Answer> bench_all(const BenchAllOptions& options, AppContext& context,
                              const std::function<int(const std::vector<Answer>&)>& at_end) {
  return AllBench(options, context, at_end).run();
}

}  // namespace trireme
