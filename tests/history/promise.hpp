// What each promise is made of: it sees the records one by one and notes what breaks it.
#pragma once

#include "history/history.hpp"

#include "model/ids.hpp"
#include "model/index_set.hpp"

#include <memory>

namespace hpcbatch::history {

class Promise {
 public:
  Promise(std::string name, const Options& options, std::vector<Breach>& breaches)
      : options_(options), name_(std::move(name)), breaches_(breaches) {}
  virtual ~Promise() = default;
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;

  virtual void see(std::size_t at, const Record& record) = 0;
  virtual void end() {}

 protected:
  void broken(std::string text, std::vector<std::size_t> records) {
    breaches_.push_back({name_, std::move(text), std::move(records)});
  }
  const Options& options_;

 private:
  std::string name_;
  std::vector<Breach>& breaches_;
};

std::unique_ptr<Promise> submissions(const Options& options,
                                     std::vector<Breach>& breaches);  ///< G1, G4
std::unique_ptr<Promise> results(const Options& options, std::vector<Breach>& breaches);   ///< G2
std::unique_ptr<Promise> attempts(const Options& options, std::vector<Breach>& breaches);  ///< G3
std::unique_ptr<Promise> waste(const Options& options, std::vector<Breach>& breaches);     ///< G5
std::unique_ptr<Promise> allocations(const Options& options,
                                     std::vector<Breach>& breaches);  ///< G6

// Facts of a record.  What is missing or no number is 0, which breaks promises rather than passing
// unseen.
std::uint64_t number_of(const Record& record, std::string_view name);
TaskId task_of(const Record& record);
ArrayId array_of(const Record& record);
IndexSet indices_of(const Record& record);
/// Each index of the array.
std::vector<TaskId> tasks_of(const Record& record);

bool is_by_engine(const Record& record);
/// "NAME.RANK/INCARNATION"; empty where no pilot recorded it.
std::string pilot_process(const Record& record);
/// "NAME.RANK" of "NAME.RANK/INCARNATION".
std::string pilot_of(const std::string& process);
/// "NAME" of "NAME.RANK".
std::string allocation_of(const std::string& pilot);

}  // namespace hpcbatch::history
