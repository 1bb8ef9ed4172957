// What a client writes into `X.job`.
#pragma once

#include "documents/view.hpp"
#include "dropbox/job_watch.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hpcbatch {

/// The maps keep the order of the file; values are the text that the client wrote (`010` is `010`).
struct JobFile {
  using Map = std::vector<std::pair<std::string, std::string>>;
  std::string script;  ///< a template or a tool
  Map args;
  Map inputs;     ///< key to absolute path
  Map outputs;    ///< key to absolute path
  Node document;  ///< all of it, unknown keys too, without the nodes `hpc` and `job`, which are
                  ///< ours to write
  bool has_ours{false};  ///< it held `hpc` or `job`, as the documents do that we write
  std::vector<std::string> warnings;
};

/// Throws DocumentError, also for a file that is still being written: whoever calls gives it time.
JobFile parse_job(std::string_view text, const std::string& file);

/// As `parse_job`, for a document that was read before.
JobFile job_of(const Node& document, const std::string& file);

// `<<name>>` in a template: AMP's way to write the script of a job.  `<<name:q>>` is the value in quotes
// for the shell, as one word whatever it holds; it stands in no other quotes.

struct TemplateValue {
  std::string text;
  /// Chosen by us, by the configuration or by our own user.  What another user sends is inserted
  /// only where no shell could read more into it than a word.
  bool trusted{false};
};

struct RenderedTemplate {
  std::string text;
  std::set<std::string> unknown;  ///< names without a value, which are left as they are
};

/// One pass: a value is inserted as it is and not looked at again.  Throws std::invalid_argument
/// for a value that is not trusted and not safe to insert.
RenderedTemplate render_template(std::string_view text,
                                 const std::map<std::string, TemplateValue>& values);

/// Letters, digits, `_./:,=+@%-` and non-ASCII letters; a `-` first only in a number.
bool is_safe_in_shell(std::string_view value);

// Files that are known by what they are, whatever their names.

/// Of one file system.  Only whoever may write a file can make it look like another one.
class KnownFiles {
 public:
  void add(const FileStamp& stamp) {
    if (!files_.insert(key_of(stamp)).second) return;
    order_.push_back(key_of(stamp));
    if (order_.size() <= kMost) return;
    files_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(const FileStamp& stamp) const { return files_.contains(key_of(stamp)); }

 private:
  /// An inode's number is given again, at another time.
  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t>;
  static Key key_of(const FileStamp& stamp) { return {stamp.inode, stamp.modified_ns, stamp.size}; }
  static constexpr std::size_t kMost = 100'000;
  std::set<Key> files_;
  std::deque<Key> order_;  // the oldest first
};

}  // namespace hpcbatch
