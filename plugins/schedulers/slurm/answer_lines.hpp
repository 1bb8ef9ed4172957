// Lines of SLURM's answers taken apart.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm {

/// Those between `|`: the first `count - 1`, and the rest of the line as the last, which may hold
/// anything; none where there are fewer.
std::vector<std::string> fields(std::string_view line, std::size_t count);
/// A record that squeue has printed between marks: `head` has no free text, `free` is a batch job's
/// name, which may hold anything, line ends and bars too.
struct MarkedRecord {
  std::string_view head, free;
};
struct MarkedRecords {
  std::vector<MarkedRecord> records;
  std::string_view rest;  ///< what was printed behind them
};

/// Shell lines that choose `$mark`, a word that nobody can foresee, so that no name can hold it.  It
/// goes to squeue in SQUEUE_FORMAT: an environment is hidden from other users, arguments are not.
inline constexpr const char* kChooseMark = R"sh(
unset SQUEUE_FORMAT2
mark=hb$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
)sh";
/// What follows: "hbmark MARK", then for each record "MARK head MARK free MARK" without the blanks,
/// then "MARK end".  Views of `text`.  Nothing where it is not whole.  Linear in time.
std::optional<MarkedRecords> read_marked(std::string_view text);

/// All of them; one that is empty where the text is.
std::vector<std::string> split(std::string_view text, char by);
/// Seconds since 1970, which SLURM_TIME_FORMAT=%s asks for; nothing for "Unknown", "None" and the
/// words of versions that know nothing of that.
std::optional<std::chrono::seconds> read_moment(std::string_view text);

/// 4, 1.50G, 2000M: of a size in bytes, of a count itself; one without a unit is `plain` times it.  0
/// where it is none.
double amount_in(std::string_view text, double plain);
/// The GPUs by kind ("" where none is told) of "gpu:a100:2(S:0-1),gpu:1(IDX:0),nic:1", with "gres:"
/// before what a job asks for.
std::map<std::string, double> gpus_in_gres(std::string_view gres);

}  // namespace hpcbatch::slurm
