// Who needs which files on a site, what lies in its store, what is to be asked, sent and cleaned
// away: decides, and does nothing.
#pragma once

#include "model/ids.hpp"
#include "staging/hash_files.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A path of an owner is first identified (hashed), which gives it the key of an entry of the
/// store; the owner waits until all its entries are there.
///
/// | an entry is | it becomes | when |
/// |---|---|---|
/// | unknown, listed | there or absent | the site was asked |
/// | absent | there | it was sent |
/// | there | unknown | a task did not find it |
///
/// What was taken by a `take_...` is under way until one of the answers for it comes.
class StagedFiles {
 public:
  StagedFiles(std::string site, std::uint64_t limit) : site_(std::move(site)), limit_(limit) {}

  // --- owners
  void want(const StageOwner& owner, const std::vector<std::string>& paths, std::uint64_t ticket);
  void let_go(const StageOwner& owner);
  /// The key under which an owner's file lies there; nothing while the owner waits.
  std::optional<std::string> key_of(const StageOwner& owner, const std::string& path) const;
  struct Decided {
    std::uint64_t ticket;
    StageOwner owner;
    std::optional<StageError> error;
  };
  std::vector<Decided> take_decided() { return std::exchange(decided_, {}); }

  // --- paths on this machine
  std::vector<std::string> take_unidentified(std::size_t most);
  /// No answer: it was not looked at, and is asked for again.
  void identified(const std::string& path, const std::optional<HashAnswer>& answer, Time now);
  /// Whether one of that size may go there before it was read: it is wanted, there is room, and what
  /// has another size is another file.
  bool may_go_unread(const std::string& path, std::uint64_t size) const;
  /// One went there; then it is identified.
  void arrived(const std::string& key, const FileState& state, Time now);

  // --- the store there
  void listed(const std::string& key, std::uint64_t size, bool executable, Time last_used);
  void list_is_complete() { list_is_complete_ = true; }
  struct Question {
    std::string key;
    std::uint64_t size;
    bool executable;
  };
  std::vector<Question> take_questions(std::size_t most);
  void told(const std::string& key, bool there, Time now);
  void not_told(const std::string& key);
  struct Sending {
    std::string key;
    std::string path;
    FileState state;
  };
  /// Up to so many bytes, and one file in any case.
  std::vector<Sending> take_small(std::uint64_t bytes, std::size_t files);
  std::optional<Sending> take_large();
  /// How many wait for that, with those that nobody wants any more.
  std::size_t to_send() const { return small_.size() + large_.size(); }
  void sent(const std::string& key, Time now);
  void not_sent(const std::string& key);
  /// What is to be sent is no longer what it was.
  void changed(const Sending& sending);
  /// There was no room for it there: all that nobody holds goes, and it is tried once more.
  void no_room(const std::string& key, const std::string& text);
  void refused(const std::string& key, const StageError& error);
  void missed(const std::string& key);

  // --- cleaning
  void keep_all(bool all) { keep_all_ = all; }
  /// And what is over the limit.
  void drop_unused_since(Time before);
  /// Relative to the workspace; to be removed before anything is sent.
  std::vector<std::string> take_drops() { return std::exchange(drops_, {}); }
  void not_dropped(std::vector<std::string> paths);
  bool has_drops() const { return !drops_.empty(); }
  struct Stored {
    std::uint64_t files, bytes;
  };
  Stored stored() const { return {files_, bytes_}; }

 private:
  struct Place {
    std::string key;       // empty: not known yet
    bool is_asked{false};  // it is being identified
    bool is_there{false};
  };
  struct Owner {
    std::vector<std::uint64_t> tickets;  // who wait
    std::map<std::string, Place> places;
    std::size_t outstanding{0};
  };
  struct Path {
    std::set<StageOwner> owners;
    std::set<StageOwner> late;  // asked while it was being read
    bool is_under_way{false};
  };
  enum class Where : std::uint8_t { Unknown, Listed, Absent, There };
  struct Entry {
    std::uint64_t size{0};
    bool executable{false};
    Where where{Where::Unknown};
    bool is_queued{false};
    bool is_under_way{false};
    bool is_counted{false};
    bool was_cleaned_for{false};
    Time last_used{};
    std::map<StageOwner, unsigned> holders;
    std::vector<std::pair<StageOwner, std::string>> waiting;
    std::map<std::string, FileState> sources;
  };
  using Entries = std::map<std::string, Entry>;

  void identify_again(const std::string& path);
  void decide_where_done(const StageOwner& id, Owner& owner);
  void fail(const StageOwner& owner, const StageError& error);
  void fail_all(std::string key, const StageError& error);
  void release(const StageOwner& owner);
  void hold(const std::string& key, Entry& entry, const StageOwner& owner);
  void unhold(const std::string& key, const StageOwner& owner);
  bool is_wanted(const std::string& key, Entry& entry);
  void queue(const std::string& key, Entry& entry);
  void settle(const std::string& key);
  void count(Entry& entry, bool counted);
  void idle(const std::string& key, const Entry& entry, bool idle);
  bool make_room(const std::string& key, Entry& entry);
  bool drop_oldest();
  /// Takes from a queue what somebody still wants; the end where there is nothing of that.
  Entries::iterator next_wanted(std::deque<std::string>& from);
  std::optional<Sending> take(std::deque<std::string>& from);

  std::string site_;
  std::uint64_t limit_;
  bool keep_all_{false};
  bool list_is_complete_{false};
  std::map<StageOwner, Owner> owners_;
  std::map<std::string, Path> paths_;
  std::deque<std::string> unidentified_;
  std::map<std::string, unsigned> changes_;  // of paths, since they were sent last
  Entries entries_;
  std::deque<std::string> questions_;
  std::deque<std::string> small_;
  std::deque<std::string> large_;
  std::set<std::pair<Time, std::string>> idle_;  // that nobody holds, by when they were used last
  std::uint64_t idle_bytes_{0};
  std::uint64_t bytes_{0};
  std::uint64_t files_{0};
  std::vector<std::string> drops_;
  std::vector<Decided> decided_;
};

}  // namespace hpcbatch
