// TransferOrder says when a stage of a pipeline posts its receives and when it may free what it has
// sent, if its operations are queued on a device. Pure functions of the schedule.
//
// Streams of a device may share its queues (CUDA_DEVICE_MAX_CONNECTIONS), and then an operation
// starts only after all that were queued before it, whatever they wait for. All stages therefore
// queue their operations in an order that agrees with one order of all steps of the pipeline: that
// of their ends, if all steps take equally long. A receive is queued where the step that sends to
// it has its place. Whatever an operation needs then stands before it, on this stage and on others,
// also where a send waits for its receive, so that nothing can wait for itself.
#pragma once

#include <vector>

#include "src/parallel/pipeline/pipeline_message.h"

namespace trireme {

struct PostedReceive {
  std::size_t step = 0;    // the number of the stage's own step that takes the message
  std::size_t before = 0;  // the own step before which the receive is posted
};

struct TransferOrder {
  // steps_of_arrival(); if empty, each tensor is freed as soon as the host finds that it has left.
  std::vector<std::size_t> arrivals;
  std::vector<PostedReceive> receives;  // receives_in_order()
};

TransferOrder transfer_order(const PipelineSteps& steps, const PipelineShape& shape, int stage);
// Returns the order for make_forward_schedule(), without arrivals.
TransferOrder order_of_forwards(const PipelineShape& shape, int stage);

// Returns, for each message that the stage sends to another rank, in their order, the number of the
// stage's own step whose input shows that the message has arrived: whoever sent this input had
// taken the message before. For a message that no input shows, returns the number of the stage's
// steps.
std::vector<std::size_t> steps_of_arrival(const PipelineSteps& steps, const PipelineShape& shape,
                                          int stage);

// Returns the receives of the stage's messages from other ranks, in the order in which it posts
// them. Messages of one kind have the order in which they are sent.
std::vector<PostedReceive> receives_in_order(const PipelineSteps& steps, const PipelineShape& shape,
                                             int stage);

}  // namespace trireme
