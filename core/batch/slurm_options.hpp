// Options of sbatch: lines `#SBATCH` of scripts, and the same words elsewhere.
#pragma once

#include "batch/directives.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::batch {

/// Programs that call sbatch cannot leave an option out: signals for steps, and that files are to be
/// appended to, are left out there, and refused elsewhere.
enum class SlurmCaller : std::uint8_t { Submit, Sbatch };

/// Reads options as sbatch(1) does, one list of words after the other: a later one of the same name
/// holds.  Throws std::invalid_argument with one sentence, which begins with `where`, for what is
/// refused.
class SlurmOptions {
 public:
  /// `mark` stands before an option in what is told, such as "#SBATCH ".
  explicit SlurmOptions(std::string mark, SlurmCaller caller = SlurmCaller::Submit)
      : mark_(std::move(mark)), caller_(caller) {}

  void read(const std::vector<std::string>& words, const std::string& where);
  /// What depends on several of them is known only now.
  Terms finish();

 private:
  struct Said {
    std::string text;  ///< as it was written, with its value
    std::string value;
    bool has_value{false};
  };
  using Words = std::vector<std::string>;
  using Reader = std::optional<Words> (SlurmOptions::*)(const Said&);

  void read_one(const Words& words, std::size_t& at, const std::string& where);
  const Directive& named(const std::string& name, const std::string& word) const;
  const Directive& lettered(char letter, const std::string& word) const;
  void take(const Directive& directive, const Said& said);
  bool is_left_out(std::string_view name, std::string_view value);
  [[noreturn]] void refuse(const std::string& said, std::string_view what) const;
  static Reader reader_of(std::string_view name);

  std::optional<Words> cpus(const Said& said);
  std::optional<Words> nodes(const Said& said);
  std::optional<Words> tasks(const Said& said);
  std::optional<Words> tasks_per_node(const Said& said);
  std::optional<Words> memory(const Said& said);
  std::optional<Words> memory_per_cpu(const Said& said);
  std::optional<Words> memory_per_gpu(const Said& said);
  std::optional<Words> cpus_per_gpu(const Said& said);
  std::optional<Words> time(const Said& said);
  template <std::string Terms::*into>
  std::optional<Words> gpus(const Said& said);
  std::optional<Words> gres(const Said& said);
  std::optional<Words> output(const Said& said);
  std::optional<Words> error(const Said& said);
  std::optional<Words> input(const Said& said);
  std::optional<Words> open_mode(const Said& said);
  std::optional<Words> dependency(const Said& said);
  std::optional<Words> begin(const Said& said);
  std::optional<Words> nice(const Said& said);
  std::optional<Words> signal(const Said& said);
  std::optional<Words> export_list(const Said& said);
  std::optional<Words> exclusive(const Said& said);
  std::optional<Words> disk(const Said& said);

  std::string mark_, where_;
  SlurmCaller caller_;
  Terms terms_;
  std::vector<std::pair<std::string_view, Words>> words_of_;  ///< of submit, by the option's name
  std::uint32_t cpus_per_task_{0}, cpus_per_gpu_{0};
  std::uint64_t memory_per_gpu_{0};
  bool exclusive_{false};
};

/// Of `afterok:2000000012:2000000013,afterany:2000000014`: options of submit.  Throws
/// std::invalid_argument, which says what cannot be waited for.
std::vector<std::string> slurm_dependency(const std::string& text);

}  // namespace hpcbatch::batch
