#include "foresight/learned/model_check.hpp"

#include "foresight/learned/wait_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace hpcbatch::foresight {
namespace {

constexpr std::size_t kFewestToJudge = 50;

std::string rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

}  // namespace

std::optional<std::string> what_speaks_against(const std::vector<double>& told,
                                               const std::vector<double>& medians,
                                               const std::vector<Seconds>& waited) {
  if (waited.size() < kFewestToJudge)
    return "only " + std::to_string(waited.size()) + " waits are there to judge the model by, of " +
           std::to_string(kFewestToJudge) + " that it takes";
  const bool are_waits = told.size() == waited.size() &&
                         std::all_of(told.begin(), told.end(),
                                     [](double wait) { return std::isfinite(wait) && wait >= 0; });
  if (!are_waits) return "the model tells what is no wait";
  const double ours = errors_of(told, waited).mean_square;
  const double theirs = errors_of(medians, waited).mean_square;
  if (ours < theirs) return std::nullopt;
  return "on the newest days, which it had not seen, the model's squared error of logarithms is " +
         rounded(ours) + " where medians have " + rounded(theirs);
}

}  // namespace hpcbatch::foresight
