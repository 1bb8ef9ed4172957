// What happens to one job after the other: taken, its task submitted, its end delivered.
#pragma once

#include "dropbox/dropbox.hpp"
#include "dropbox/folder.hpp"
#include "dropbox/job_file.hpp"
#include "dropbox/job_folder.hpp"
#include "dropbox/publish.hpp"
#include "dropbox/written_documents.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// Lives on the drop box's thread; what may take long is done on a lane of the job's owner.  `name`
/// is always that of the job file, `X.job`.
class JobFlow {
 public:
  static constexpr std::size_t kMostLanes = 8;

  /// `ring` is called, on any thread, where `go_on` has something to do.
  JobFlow(const DropboxOptions& options, Workspace workspace, SubmitPort& submit_port,
          std::function<void()> ring)
      : options_(options),
        workspace_(std::move(workspace)),
        submit_port_(submit_port),
        ring_(std::move(ring)) {}
  JobFlow(const JobFlow&) = delete;
  JobFlow& operator=(const JobFlow&) = delete;
  /// What is being copied is copied to its end; what has not begun is left to the next drop box.
  ~JobFlow() { ends_ = true; }

  /// The directory may be another than before (mounted anew); jobs are not taken as cancelled for
  /// that.
  void use(DropboxFolder folder);
  const DropboxFolder& folder() const { return *folder_; }

  enum class Taken { Yes, NotYet, Later, NobodysWord };
  struct Taking {
    Taken taken{Taken::Yes};
    std::string why;  ///< where it is not Yes
  };
  /// NotYet: it is no whole job.  Later: the drop box cannot be used just now.  NobodysWord: it
  /// does not speak for its owner.  Only Yes changes anything.
  Taking take(const std::string& name, const DropboxFolder::Content& content);
  /// Delivers an error result for what never became a job.  `is_told`: with what could be read of
  /// it, which everybody may read then.
  void refuse(const std::string& name, const std::string& why, bool is_told);
  /// Takes up again what an earlier drop box left, or what a crash left half done.
  void resume(const std::string& name);
  /// Cancels the job if its `.submitted` has been removed.
  void look_after(const std::string& name);
  void look_after_all();
  void ended(const DropboxTaskEnd& end);
  /// Tries again what could not be written (a full disk).
  void deliver_again();
  /// Takes up what the lanes have done.
  void go_on();
  std::size_t active() const { return active_.size(); }
  /// How many more jobs of this user may be active.
  std::size_t room_of(std::uint32_t owner) const;

 private:
  struct Active {
    std::string name;
    Submitted job;
    std::map<std::string, std::string> destinations;  // by output key
    int seen_in{0};  // the generation of the folder in which its `.submitted` was last seen
    bool cancelled{false};
    bool is_tool{false};
    bool is_on_lane{false};  ///< it is being prepared, or published
    Readers readers;         ///< of its documents
    std::optional<JobResult> undelivered;
  };
  struct Prepared {
    Result<DropboxTask> task;
    bool is_tool{false};
    std::vector<std::string> warnings;
  };

  Active accepted(const std::string& name, const JobFile& job,
                  const DropboxFolder::Content& content) const;
  bool is_anothers(const std::string& document, std::uint32_t owner) const;
  bool is_in_anothers_way(const std::string& name, std::uint32_t owner) const;
  Result<void> set_aside(const std::string& name, std::string_view why);
  Result<Fd> put(const std::string& name, const std::string& text, const Readers& readers);
  std::optional<Submitted> job_to_resume(const std::string& name, const ReadSubmitted& read) const;
  Result<void> begin(Active& active, bool is_resumed);
  void begun(const std::string& key, Prepared prepared);
  void published(const std::string& key, JobResult result);
  /// Done on the owner's lane, as all up to `check_paths`, and `result_of`.
  Prepared prepare(const Active& active, const JobFile& job, bool is_resumed) const;
  Result<DropboxTask> task_of(const Active& active, const JobFile& job, bool is_resumed,
                              Prepared& prepared) const;
  Result<std::vector<std::string>> stage(const Active& active, const JobFile& job,
                                         const std::string& text, Prepared& prepared) const;
  Result<ToolCall> call_of(const Active& active, const JobFile& job, bool is_resumed) const;
  Result<void> check_paths(const Active& active, const JobFile& job) const;
  std::vector<Publication> publications(const Active& active, const DropboxTaskEnd& end) const;
  JobResult result_of(const Active& active, const DropboxTaskEnd& end) const;
  void add(Active active, bool is_resumed);
  void deliver(Active& active, JobResult result);
  bool write_result(Active& active);
  PublishRights rights_of(const Active& active) const;
  void warn(const std::string& text) const;
  /// On the owner's lane; what `work` returns is called by `go_on`.
  void on_lane(std::uint32_t owner, std::function<std::function<void()>()> work);
  void hand_back(std::function<void()> then);

  const DropboxOptions& options_;
  Workspace workspace_;
  SubmitPort& submit_port_;
  std::optional<DropboxFolder> folder_;
  KnownFiles known_;  // our documents, and jobs that were taken and have another name yet
  int generation_{0};
  std::map<std::string, Active> active_;            // by key
  std::map<std::string, std::string> key_of_;       // by name
  std::map<std::uint32_t, std::size_t> active_of_;  // by owner
  std::set<std::string> folders_;                   // given to jobs and not removed yet
  std::function<void()> ring_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> done_;
  OwnerLanes lanes_{kMostLanes};  // ends first: what it does looks at all else
};

}  // namespace hpcbatch
