#include "benchmarks/coll/contestant.h"

#include <cstring>

#include "src/base/error.h"

namespace trireme {
namespace {

void copy(const ConstView& from, const View& to) {
  if (to.count > 0) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(to.bytes()));
  }
}

View own_block(const View& data, int rank, int size) {
  const std::int64_t n = data.count / size;
  return data.slice(rank * n, n);
}

class Ours : public Contestant {
 public:
  Ours(Communicator& comm, const CollectiveTask& task, Stream* stream)
      : comm_(comm), task_(task), stream_(stream), counts_(static_cast<std::size_t>(comm.size())) {}

  void in_place(const View& data, const View& other) override {
    if (task_.op == Collective::all_to_all) {
      move(data, other);
      exchange(other, data);
    } else {
      finish(start(data));
    }
  }

  void out_of_place(const View& from, const View& to) override {
    if (task_.op == Collective::all_to_all) {
      exchange(from, to);
      return;
    }
    if (task_.op == Collective::all_reduce) {
      finish(comm_.all_reduce(from, to, task_.reduction, stream_));
      return;
    }
    if (task_.op == Collective::all_gather) {
      move(own_block(from, comm_.rank(), comm_.size()), own_block(to, comm_.rank(), comm_.size()));
    } else if (!has_root(task_.op) || comm_.rank() == task_.root) {
      move(from, to);
    }
    finish(start(to));
  }

 private:
  void exchange(const View& from, const View& to) {
    counts_.assign(counts_.size(), from.count / comm_.size());
    finish(comm_.all_to_all(from, counts_, to, counts_, stream_));
  }

  void move(const ConstView& from, const View& to) {
    if (stream_ == nullptr) {
      copy(from, to);
    } else if (to.count > 0) {
      stream_->copy(to, from);
    }
  }

  void finish(Pending pending) {
    if (stream_ == nullptr) {
      pending.wait();
    } else {
      pending.wait(*stream_);
    }
  }

  Pending start(const View& data) {
    switch (task_.op) {
      case Collective::all_reduce:
        return comm_.all_reduce(data, task_.reduction, stream_);
      case Collective::reduce_scatter:
        return comm_.reduce_scatter(data, task_.reduction, stream_);
      case Collective::all_gather:
        return comm_.all_gather(data, stream_);
      case Collective::broadcast:
        return comm_.broadcast(data, task_.root, stream_);
      case Collective::barrier:
        return comm_.barrier();
      case Collective::all_to_all:
        break;
    }
    throw InternalError("no such operation");
  }

  Communicator& comm_;
  CollectiveTask task_;
  Stream* stream_;  // null if the host waits for each operation
  std::vector<std::int64_t> counts_;
};

class Mpis : public Contestant {
 public:
  Mpis(MpiNative& mpi, const CollectiveTask& task, int rank, int size)
      : mpi_(mpi), task_(task), rank_(rank), size_(size) {}

  void in_place(const View& data, const View&) override { run({}, data); }

  void out_of_place(const View& from, const View& to) override {
    switch (task_.op) {
      case Collective::reduce_scatter:
        return run(from, own_block(to, rank_, size_));
      case Collective::all_gather:
        return run(own_block(from, rank_, size_), to);
      case Collective::broadcast:  // our broadcast works in place only
        if (rank_ == task_.root) {
          copy(from, to);
        }
        return run({}, to);
      default:
        return run(from, to);
    }
  }

 private:
  void run(const ConstView& send, const View& recv) {
    switch (task_.op) {
      case Collective::all_reduce:
        return mpi_.all_reduce(send, recv, task_.reduction);
      case Collective::reduce_scatter:
        return mpi_.reduce_scatter(send, recv, task_.reduction);
      case Collective::all_gather:
        return mpi_.all_gather(send, recv);
      case Collective::broadcast:
        return mpi_.broadcast(recv, task_.root);
      case Collective::barrier:
        return mpi_.barrier();
      case Collective::all_to_all:
        return mpi_.all_to_all(send, recv);
    }
  }

  MpiNative& mpi_;
  CollectiveTask task_;
  int rank_;
  int size_;
};

}  // namespace

std::unique_ptr<Contestant> make_contestant(Communicator& comm, const CollectiveTask& task,
                                            Stream* stream) {
  return std::make_unique<Ours>(comm, task, stream);
}

std::unique_ptr<Contestant> make_contestant(MpiNative& mpi, const CollectiveTask& task, int rank,
                                            int size) {
  return std::make_unique<Mpis>(mpi, task, rank, size);
}

}  // namespace trireme
