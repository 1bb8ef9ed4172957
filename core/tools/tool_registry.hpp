// Where tools lie: finds their files by name, reads them again when they change, and opens their
// plugins at first use.
#pragma once

#include "hpcbatch/tool.hpp"
#include "tools/prepare.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// A tool whose calls wait for somebody else: never on a thread that has other duties.

class BlockingTool : public Tool {};

/// Makes the plugin's object for one tool's file (whose text it gets).
using OpenTool = std::function<Result<std::shared_ptr<Tool>>(const std::string& plugin,
                                                             const std::string& text)>;

/// All that `prepare` needs; callable on any thread, and after the tool has changed.
struct Preparation {
  std::shared_ptr<const ToolFile> tool;
  std::shared_ptr<const Tool> plugin;
  ToolCall call;
  std::map<std::string, std::string> defaults;
  std::string directory;
  Result<RenderedTask> operator()() const {
    return prepare(*tool, *plugin, call, defaults, directory);
  }
};

/// The configured folders and then `../share/hpcbatch/tools` as seen from the program's folder.
std::vector<std::string> tool_directories(const std::vector<std::string>& configured,
                                          const std::string& folder_of_program);

/// Reads files when asked; for one thread.  A tool is `NAME.yaml` in the first folder that has it.
/// Files that others could have written are refused: their commands run with the rights of the
/// engine's user.
class ToolRegistry {
 public:
  /// `parameters`: the configuration's defaults, by tool.  `trust_group`: whose members may write the
  /// tools' files (posix/trusted_path.hpp); empty: nobody's.
  ToolRegistry(std::vector<std::string> directories, OpenTool open,
               std::map<std::string, std::map<std::string, std::string>> parameters = {},
               std::string trust_group = {});

  struct Listing {
    std::string name;
    std::string path;
    std::shared_ptr<const ToolFile> tool;  ///< null: `error` says why it cannot be used
    std::string error;
  };
  /// All tools by name; loads no plugin.
  std::vector<Listing> list();
  Result<std::shared_ptr<const ToolFile>> find(const std::string& name);
  /// As `find`, and opens the plugin.
  Result<std::shared_ptr<const ToolFile>> check(const std::string& name);
  /// As the function of that name, for the tool that `call` names.
  Result<RenderedTask> prepare(const ToolCall& call, const std::string& directory);
  /// The same, to be done on another thread, where the tool's plugin is one that blocks.
  std::optional<Preparation> elsewhere(const ToolCall& call, const std::string& directory);
  /// The plugin of that tool, where it is one that blocks.
  std::shared_ptr<const BlockingTool> blocking(const std::string& name);

 private:
  struct Stamp {
    std::string path;
    std::uint64_t inode{0};
    std::int64_t changed_ns{0};
    std::int64_t size{0};
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Shelved {
    Stamp stamp;
    std::shared_ptr<const ToolFile>
        file;  // shared with whoever asked for it: it outlives a change of the file
    std::shared_ptr<Tool> plugin;  // null until first used
  };

  std::map<std::string, std::string> defaults_of(const std::string& name) const;
  Result<Shelved*> look_up(const std::string& name);
  Result<Shelved*> open(const std::string& name);
  std::vector<std::string> known_names() const;

  std::vector<std::string> directories_;
  OpenTool open_;
  std::map<std::string, std::map<std::string, std::string>> parameters_;
  std::string trust_group_;
  std::map<std::string, Shelved> registry_;
};

}  // namespace hpcbatch
