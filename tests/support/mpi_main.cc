// main() of test programs that run under mpirun. Every rank runs every test, and rank 0 prints the
// results. As a failed assertion on one rank would leave the others waiting, it is printed with its
// rank and ends the job.
#include <cstdio>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

MpiSession* session = nullptr;

class AbortOnFailure : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) {
      return;
    }
    fmt::print(stderr, "rank {} (host {}): {}:{}: {}\n", session->place().rank,
               session->place().host, result.file_name() == nullptr ? "" : result.file_name(),
               result.line_number(), result.message());
    std::fflush(stderr);
    session->abort(ExitCode::refused);
  }
};

}  // namespace

MpiSession& test_session() { return *session; }

}  // namespace trireme

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  trireme::MpiSession session;
  trireme::session = &session;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.place().rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
  }
  listeners.Append(new trireme::AbortOnFailure);
  return RUN_ALL_TESTS();
}
