// Teaching is what a student learns from another model (knowledge distillation): a whole model with
// frozen parameters, and how its probabilities enter the loss (Hinton, Vinyals and Dean, 2015,
// section 2), which for each token that counts is
//   (1 - weight) x cross entropy + weight x temperature^2 x KL(teacher || student)
// with both softmaxes of KL at that temperature. A plain value; the caller owns what it refers to.
#pragma once

#include "src/nn/model.h"

namespace trireme {

struct Teaching {
  const Model& teacher;
  ParameterStore& parameters;  // of the teacher, all in memory, of the student's type
  float weight = 0;
  float temperature = 1;
};

}  // namespace trireme
