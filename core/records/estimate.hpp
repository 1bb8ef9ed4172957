// What a task of a kind is expected to need, from what those before it used.
#pragma once

#include "model/needs.hpp"
#include "model/site.hpp"
#include "records/usage.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::records {

/// Of a kind of which enough has been seen.
struct Estimate {
  double runs{0};          ///< that say so
  std::int64_t memory{0};  ///< bytes that did for 95 of 100, with head-room; 0: not known
  Duration time{};         ///< the same
  double gpus{0};          ///< the part of one GPU that is enough (advice.hpp); 0: not known
};

/// By kind; only of those of which enough has been seen.
using Estimates = std::map<std::string, Estimate, std::less<>>;

/// Nothing where too few have been seen.
std::optional<Estimate> estimate_of(const Profile& profile);

/// What is made of it for one submission.
struct Estimated {
  Needs needs;
  std::vector<std::string> advice;  ///< for who submits, one sentence each
};

/// What is not said is taken from the estimate, and memory that is said and much more than that is
/// packed by it, as are GPUs, a whole one or a part; where no shape that could run the task could then, it stays as it is.  `Advise`
/// leaves the needs alone.
Estimated estimated(const Needs& needs, const Estimate& estimate, const std::string& kind,
                    EstimateMode mode, const std::vector<const Site*>& sites);

// What kind of task one is: those of a kind are expected to need alike.

/// All that says of what kind a task is; each may be empty.
struct KindHints {
  std::string_view said;  ///< by who submits: a Snakemake rule, a Galaxy tool
  std::string_view tool;
  std::string_view name;     ///< of its submission, with the places for items as they were written
  std::string_view program;  ///< the first word of its command
};

/// The first of them that says something, of a program the last part of its path.  Numbers in names
/// are left out: those of `run 17` and `run 18` are one kind.  At most kLongestKind bytes, on one
/// line.
std::string kind_of(const KindHints& hints);
inline constexpr std::size_t kLongestKind = 100;

/// Where there are too many kinds to be told apart.
inline constexpr std::string_view kOtherKinds = "(others)";

}  // namespace hpcbatch::records
