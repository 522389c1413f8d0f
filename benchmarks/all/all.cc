#include "benchmarks/all/all.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "benchmarks/all/budget.h"
#include "benchmarks/all/questions.h"
#include "benchmarks/all/time_guard.h"
#include "benchmarks/io/io_folder.h"
#include "benchmarks/muted_output.h"
#include "benchmarks/scratch_folders.h"
#include "src/base/error.h"
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

class AllBench {
 public:
  AllBench(const BenchAllOptions& options, AppContext& context,
           const std::function<int(const std::vector<Answer>&)>& at_deadline)
      : options_(options),
        world_(context.session().world()),
        questions_(chosen(questions_for(context, options.folder), options.only)),
        guard_(std::chrono::duration<double>(60 * options.minutes - kReportSeconds), [=, this] {
          const std::lock_guard lock(mutex_);
          std::vector<std::string> names;
          for (const Question& question : questions_) {
            names.push_back(question.name);
          }
          const std::vector<Answer> all =
              with_unanswered(answers_, names, watch_.seconds(), rows_.all());
          if (muted_) {
            muted_->restore();
          }
          const int code = at_deadline(all);
          ScratchFolders::remove_before_exit(kRemovalPatience);
          std::fflush(nullptr);
          ::_exit(code);
        }) {}

  std::vector<Answer> run();

 private:
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
  TimeGuard guard_;  // declared last, so that it ends before what it uses
};

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
  const std::lock_guard lock(mutex_);
  muted_.reset();
  return answer;
}

}  // namespace

std::vector<Answer> bench_all(const BenchAllOptions& options, AppContext& context,
                              const std::function<int(const std::vector<Answer>&)>& at_deadline) {
  return AllBench(options, context, at_deadline).run();
}

}  // namespace trireme
