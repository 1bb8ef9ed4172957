// Options of qsub: lines `#PBS` of scripts, and the same words elsewhere.
#pragma once

#include "batch/directives.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::batch {

/// Reads options as qsub(1B) of OpenPBS does, and Torque's `nodes=1:ppn=4`, one list of words after
/// the other.  Throws std::invalid_argument with one sentence, which begins with `where`, for what is
/// refused.
class PbsOptions {
 public:
  /// `mark` stands before an option in what is told, such as "#PBS ".
  explicit PbsOptions(std::string mark) : mark_(std::move(mark)) {}

  void read(const std::vector<std::string>& words, const std::string& where);
  /// What depends on several of them is known only now.
  Terms finish();

 private:
  using Words = std::vector<std::string>;

  [[noreturn]] void refuse(const std::string& said, std::string_view what) const;
  void hold(const std::string& said, const Words& words);
  void take(const Directive& directive, const std::string& said, const std::string& value);
  void take_resources(const std::string& said, const std::string& list);
  void take_resource(const std::string& said, const std::string& name, const std::string& value);
  void take_chunk(const std::string& said, std::string_view chunk);
  void take_count(const std::string& said, std::string_view text);
  void spread();
  void take_nodes(const std::string& said, std::string_view value);
  void take_amount(const std::string& said, std::string_view name, const std::string& value);
  void take_attributes(const std::string& said, const std::string& list);
  void take_dependency(const std::string& said, std::string_view text);
  void take_file(const std::string& said, const char* option, const std::string& value);
  void take_moment(const std::string& said, const std::string& value);
  void take_join(const std::string& said, const std::string& value);
  void take_mails(const std::string& said, const std::string& value);
  void take_priority(const std::string& said, const std::string& value);

  std::string mark_, where_, joined_;
  Words dependency_, dependency_told_;
  Terms terms_;
  std::uint64_t cpus_{0}, gpus_{0}, memory_{0};
  bool mails_are_said_{false}, packs_{false}, is_torque_{false};
};

}  // namespace hpcbatch::batch
