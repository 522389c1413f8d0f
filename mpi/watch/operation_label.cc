#include "mpi/watch/operation_label.h"

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

bool reduces(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce_scatter;
}

}  // namespace

std::string OperationLabel::text() const {
  return fmt::format("{} #{} ({})", name_of(kind), number, format_bytes(bytes));
}

std::string OperationLabel::full_text() const {
  if (kind == OperationKind::barrier) {
    return fmt::format("barrier #{}", number);
  }
  std::string text =
      fmt::format("{} #{} ({}, {}", name_of(kind), number, format_bytes(bytes), dtype_name(dtype));
  if (reduces(kind)) {
    text += fmt::format(", {}{}", name_of(op), order == SumOrder::any ? " in any order" : "");
  }
  if (kind == OperationKind::broadcast) {
    text += fmt::format(", root {}", root);
  }
  return text + ")";
}

OperationLabel label_of(const OperationRequest& request, SumOrder order) {
  OperationLabel label;
  label.kind = request.kind;
  label.dtype = request.from.dtype;
  label.order = order;
  label.op = request.op;
  label.root = request.peer;
  label.bytes = request.from.bytes();
  return label;
}

bool agree(const OperationLabel& a, const OperationLabel& b) {
  const bool same_size = a.kind == OperationKind::all_to_all || a.bytes == b.bytes;
  return a.kind == b.kind && a.number == b.number && a.dtype == b.dtype && a.op == b.op &&
         a.root == b.root && a.order == b.order && same_size;
}

}  // namespace trireme
