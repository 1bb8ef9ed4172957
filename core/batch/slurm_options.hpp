// Options of sbatch: lines `#SBATCH` of scripts, and the same words elsewhere.
#pragma once

#include "batch/directives.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::batch {

/// Whose words they are.  What the caller of sbatch says, in variables and on the command line, goes
/// over all lines of his script.
enum class SaidBy : std::uint8_t { Script, Variable, Caller };

/// Reads options as sbatch(1) does, one list of words after the other: of several of a kind the last
/// holds, and what the others ask for does not matter.
class SlurmOptions {
 public:
  /// `mark` stands before an option in what is told, such as "#SBATCH ".
  /// `said_beside`: options of submit that are said elsewhere and hold over these.
  explicit SlurmOptions(std::string mark, std::vector<std::string> said_beside = {})
      : mark_(std::move(mark)), said_beside_(std::move(said_beside)) {}

  /// Throws std::invalid_argument, which begins with `where`, for what is no option of sbatch.
  void read(const std::vector<std::string>& words, const std::string& where,
            SaidBy by = SaidBy::Script);
  /// What depends on several of them is known only now.  Throws std::invalid_argument, which begins
  /// with the place of what is refused.
  Terms finish();

 private:
  struct Said {
    std::string text;  ///< as it was written, with its value
    std::string value;
    bool has_value{false};
  };
  struct Asked {
    const Directive* directive;
    Said said;
    std::string where;
    SaidBy by;
  };
  using Words = std::vector<std::string>;
  using Reader = std::optional<Words> (*)(SlurmOptions&, const Said&);

  void read_one(const Words& words, std::size_t& at, SaidBy by);
  const Directive& named(const std::string& name, const std::string& word) const;
  const Directive& lettered(char letter, const std::string& word) const;
  void take(const Asked& asked);
  void check_memory();
  void take_all();
  void put_variables(std::string_view name, const Said& said);
  [[noreturn]] void refuse(const std::string& said, std::string_view what) const;
  std::uint64_t spread_tasks();
  void spread_gpus(std::uint64_t tasks_of_node);
  static Reader reader_of(std::string_view name);
  template <std::optional<Words> (SlurmOptions::*Member)(const Said&)>
  static std::optional<Words> by(SlurmOptions& options, const Said& said);
  static bool is_nothing_said(std::string_view name, const Said& said);

  std::optional<Words> array(const Said& said);
  std::optional<Words> job_name(const Said& said);
  std::optional<Words> cpus(const Said& said);
  std::optional<Words> nodes(const Said& said);
  std::optional<Words> memory(const Said& said);
  std::optional<Words> memory_per_cpu(const Said& said);
  std::optional<Words> memory_per_gpu(const Said& said);
  std::optional<Words> gpus_of_all(const Said& said);
  std::optional<Words> gpus_per_task(const Said& said);
  std::optional<Words> gres(const Said& said);
  std::optional<Words> input(const Said& said);
  std::optional<Words> open_mode(const Said& said);
  std::optional<Words> dependency(const Said& said);
  std::optional<Words> nice(const Said& said);
  std::optional<Words> signal(const Said& said);
  std::optional<Words> export_list(const Said& said);
  std::optional<Words> exclusive(const Said& said);
  std::optional<Words> mail_type(const Said& said);
  std::optional<Words> mail_user(const Said& said);

  std::string mark_, where_;
  Words said_beside_;
  std::vector<Asked> asked_;
  Terms terms_;
  std::uint32_t cpus_per_task_{0};
  std::string gpus_per_task_, gpus_of_all_;
  bool exclusive_{false};
};

/// `UNLIMITED`, `infinite` or `-1`, as times are where there is no limit.
bool is_slurm_unlimited(std::string_view text);

/// A job's limit as the batch system takes it: whole minutes, of parts of one the next.  Nothing where
/// it is no time (batch_time.hpp).
std::optional<std::chrono::seconds> slurm_limit(std::string_view text);

/// Whether an option of sbatch sets it, and nothing else does.
bool is_slurm_variable(std::string_view name);

}  // namespace hpcbatch::batch
