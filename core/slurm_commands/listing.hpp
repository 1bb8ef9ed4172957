// Tables of squeue, sacct and sinfo: which columns a format asks for, and the rows.  Pure.
#pragma once

#include "slurm_commands/job.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm_commands {

/// What values need beside the job.
struct Viewed {
  double now{0};
  std::string user;
  std::uint32_t uid{0};
  std::string group;
  std::uint32_t gid{0};
  std::string time_format;  ///< SLURM_TIME_FORMAT
  char unit{0};             ///< of memory, as --units says: K, M, G, T, P; 0: as it fits
  std::string default_partition{"hpcbatch"};
};

/// One column of a listing; the fixed text between columns is one without a value.
struct Column {
  std::string title;
  std::function<std::string(const Job&)> value;  ///< none: `suffix` alone
  std::size_t width{0};                          ///< 0: as long as it is
  bool right{false};
  bool is_span{false};  ///< of time, which Slurm cuts at the left alone
  std::string suffix;
};

/// `%.18i %.9P`; throws CommandFailed where a letter is unknown.
std::vector<Column> squeue_columns(std::string_view format, const Viewed& viewed);
/// `JobID:20,State:.10`; unknown names are refused.
std::vector<Column> squeue_long_columns(std::string_view format, const Viewed& viewed);

inline constexpr std::string_view kSqueueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
/// When jobs that wait may start.
inline constexpr std::string_view kSqueueStartFormat =
    "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
inline constexpr std::string_view kSqueueLongFormat =
    "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";

/// A line without its newline.
std::string title_line(const std::vector<Column>& columns);
std::string line_of(const std::vector<Column>& columns, const Job& job);

/// sacct: fields `JobID%20`, and how lines are told apart.
struct SacctStyle {
  bool parsable{false};
  bool last_delimiter{false};  ///< of `--parsable`
  std::string delimiter{"|"};
};
/// One line of sacct: a job, or a step of it.
struct SacctLine {
  Job job;
  std::string step;  ///< `batch`, `extern`; empty: the job
};
class SacctTable {
 public:
  /// Throws CommandFailed where a field is unknown.
  SacctTable(const std::vector<std::string>& fields, SacctStyle style, Viewed viewed);
  /// With the line of dashes; a newline behind each.
  std::string titles() const;
  std::string line(const SacctLine& line) const;

 private:
  struct Field {
    std::string title;
    std::function<std::string(const SacctLine&, const Viewed&)> value;
    std::size_t width{0};
    bool left{false};
  };
  std::string row(const std::function<std::string(const Field&)>& text_of) const;

  std::vector<Field> fields_;
  SacctStyle style_;
  Viewed viewed_;
};

inline constexpr std::string_view kSacctFields =
    "jobid,jobname,partition,account,alloccpus,state,exitcode";
inline constexpr std::string_view kSacctBriefFields = "jobid,state,exitcode";
inline constexpr std::string_view kSacctLongFields =
    "jobid,jobidraw,jobname,partition,maxrss,reqmem,alloccpus,elapsed,state,exitcode,submit,start,"
    "end,nodelist";
/// All names, for `--helpformat`.
std::vector<std::string> sacct_field_names();

/// `afterok:2000000012(unfulfilled)`; `(null)`: it waits for none.
std::string dependency_text(const Job& job, const Viewed& viewed);

/// By the letters of `--sort`, `-` before one turns it round.
void sort_jobs(std::vector<Job>& jobs, std::string_view by, const Viewed& viewed);

}  // namespace hpcbatch::slurm_commands
