// Overloaded makes one visitor for std::visit out of a lambda per alternative.
#pragma once

namespace trireme {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace trireme
