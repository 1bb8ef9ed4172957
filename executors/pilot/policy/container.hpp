// What a task's container is made of, which of the node's runtimes runs it, and by which words
// that is started.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

// What a task's container is made of, as its text says it and as the node sees it.

enum class ImageKind {
  File,      // a SIF, or an image file of an earlier Singularity
  Squash,    // a SquashFS file
  Tree,      // a folder with a root file system
  Layout,    // a folder that is an OCI layout
  Archive,   // a tar file of Docker's or OCI's making
  Registry,  // a name that a registry knows
  Other      // what only Apptainer knows
};

struct Image {
  ImageKind kind{ImageKind::File};
  std::string place;  // path, perhaps with a tag behind it, or name in a registry
  std::string said;   // as it was asked for
};

/// Whether the text names a file or folder of the node: by a '/', '.' or '..' at its begin, or by
/// the ending of an image file.
bool is_path_of_image(const std::string& text);

/// What the node has at a path.
struct PathFacts {
  bool is_folder{false};
  bool is_layout{false};
};

/// `directory` is where relative paths begin.  `facts` are of the path, where it is one.
Image image_of(const std::string& text, const std::string& directory, const PathFacts& facts);

/// The file or folder that has to be there; empty: none.
std::string path_of(const Image& image);

/// As Podman, Docker, Apptainer and Skopeo take it.
std::string with_transport(const Image& image);

// Which of a node's container runtimes runs a task: by what the task asks for, what its image is,
// and the order that the site wishes.

enum class Runtime { Apptainer, Singularity, Podman, Charliecloud, Docker };

/// As people write it.
const char* name_of(Runtime runtime);
/// As its program is called.
const char* program_of(Runtime runtime);
std::optional<Runtime> runtime_named(const std::string& name);

/// Those that may be used, the first that is there first.
struct ContainerRule {
  std::vector<Runtime> order{Runtime::Apptainer, Runtime::Singularity, Runtime::Podman,
                             Runtime::Charliecloud, Runtime::Docker};
  std::string trouble;  // what is wrong with what the site says; then nothing is run
};
/// From names between blanks or commas; nothing said: all, in the order above.
ContainerRule container_rule(const std::string& text);

struct FoundRuntime {
  Runtime runtime{Runtime::Apptainer};
  std::string program;  // its path
};

/// What a task asks of its runtime that not all of them can do.
struct ContainerWish {
  std::string runtime;  // empty: any
  bool no_network{false};
  bool keeps_entrypoint{false};
  bool has_read_only_binds{false};
};

/// The first of the rule that is on the node and does all that is asked for; else one sentence.
std::variant<FoundRuntime, std::string> choose_runtime(const Image& image,
                                                       const ContainerWish& wish,
                                                       const ContainerRule& rule,
                                                       const std::vector<FoundRuntime>& found);

// The words with which each container runtime is started, so that a task in a container has the
// folders, streams, limits, signals and user that it would have without one.

/// What a process of ours in the container leaves behind about the task's program, so that its end
/// is known as exactly as that of a program outside of one.
struct ContainerReport {
  enum class Said { Nothing, Begun, CannotRun, Exited, Signalled };
  Said said{Said::Nothing};
  int value{0};  // errno, exit code or signal
};

struct ContainerEnd {
  std::string runtime;  // its name
  bool reports{false};  // else only the runtime's exit code is known
  ContainerReport report;
};

/// Always as long, so that the end finds room where the begin had it.
std::string to_text(const ContainerReport& report);
ContainerReport container_report(const std::string& text);

enum class GpuMaker { None, Nvidia, Amd, Intel };

struct Bind {
  std::string from;
  std::string to;
  bool read_only{false};
};

struct SoftAndHard {
  std::uint64_t soft{};
  std::uint64_t hard{};
};

struct ContainerPlan {
  FoundRuntime runtime;
  Image image;
  std::string prepared;   // file, folder or number in place of the image; empty: it runs as it is
  std::string name;       // of the container, this attempt's alone
  std::string directory;  // where the task runs
  std::vector<Bind> binds;
  std::map<std::string, std::string> variables;  // over the task's own
  bool has_network{true};
  bool keeps_entrypoint{false};
  bool has_environment_file{false};  // of the image, as Charliecloud keeps it
  GpuMaker gpus{GpuMaker::None};
  unsigned umask{};
  SoftAndHard open_files, processes;
  unsigned user{}, group{};  // the pilot's
  std::uint64_t memory{};    // bytes, a limit; 0: none
  std::string temporary;     // TMPDIR
  // Our program and the file that it reports to, both bound; it runs the task's command inside.
  // Not where the image's entrypoint is kept.
  std::string inside, report;
};

/// `names` are those of the task's variables.
std::vector<std::string> container_argv(const ContainerPlan& plan,
                                        const std::vector<std::string>& command,
                                        const std::vector<std::string>& names);

/// What the runtime's own process is to have over the task's variables; an empty value is as none.
std::map<std::string, std::string> runtime_variables(const ContainerPlan& plan);

/// Removes what a runtime that was killed has left; empty: it leaves nothing.
std::vector<std::string> removal_argv(const FoundRuntime& runtime, const std::string& name);

}  // namespace hpcbatch::pilot
