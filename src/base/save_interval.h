// Computes how often to save a checkpoint, so that saving costs as much as the work that failures
// undo:
//
//   t = sqrt(2 d M)                                                   (Young, CACM 17(9), 1974)
//   t = sqrt(2 d M) [1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)] - d,  d < 2M;  else M
//                                  (Daly, Future Generation Computer Systems 22(3), 2006, eq. 37)
//
// where d is the cost of a save and M the mean time between failures. Daly's formula is used; it
// corrects Young's for expensive saves. Pure functions.
#pragma once

namespace trireme {

// Returns the best time between two saves, in seconds (Daly's formula). M is above 0.
double best_interval(double save_seconds, double mtbf_seconds);

}  // namespace trireme
