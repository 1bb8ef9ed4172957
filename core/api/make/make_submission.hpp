// What was asked for becomes what the engine takes, whichever client asked: tools are looked up, commands rendered.
#pragma once

#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"
#include "hardware/gpu_kind.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/site.hpp"
#include "records/estimate.hpp"
#include "runtime/client_requests.hpp"
#include "tools/tool_registry.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A task of a tool, as it was made on another thread.
struct Rendering {
  std::string directory;  ///< as in `prepare`
  Result<RenderedTask> task;
};
/// By the places of their tasks in the request.
using Renderings = std::map<std::size_t, Rendering>;

/// What is to be made on another thread before tasks with those `files` are added.
struct RenderingAsked {
  std::size_t place;
  Preparation preparation;
};
std::optional<RenderingAsked> rendering_elsewhere(ToolRegistry& tools, const TaskRequest& task,
                                                  std::size_t place,
                                                  const std::map<std::string, InputFile>& files);

class SubmissionMaker {
 public:
  /// `request`: what holds for all of its tasks; outlives this, as the tools and estimates do.
  /// `umask`: for tasks whose client names none.
  SubmissionMaker(ToolRegistry& tools, std::vector<const Site*> sites, const SubmitRequest& request,
                  std::uint32_t umask, const records::Estimates& estimates);
  void expect(std::size_t tasks);
  /// `files`: what the tool's inputs look like, by path; `rendered`: where it was made elsewhere.
  /// The outputs of a tool, empty for a command.  Throws BadRequest.
  std::vector<RenderedOutput> add(TaskRequest task, const std::map<std::string, InputFile>& files,
                                  const Rendering* rendered = nullptr);
  Submission take() { return std::move(made_); }

 private:
  void estimate(const TaskRequest& task, const wire::Start& start, Needs& needs);

  ToolRegistry& tools_;
  std::vector<const Site*> sites_;
  const SubmitRequest& request_;
  std::uint32_t umask_;
  const records::Estimates& estimates_;
  std::shared_ptr<const std::string> environment_;
  Submission made_;
};

// What is said of a GPU's memory and capability -> the kinds that there are and that have it.

/// All cpus, or all memory, of a node: those of the shape with the least memory of all that have what
/// else is asked for, so that it may run on each of them.
void choose_whole_node(const TaskRequest& task, const std::vector<const Site*>& sites,
                       Needs& needs);

/// Puts the ways in which it may be run into `needs`, with what it says beside them in each.  Those
/// for which there is no GPU are left out.  Throws BadRequest where none is left.
void choose_ways(const std::vector<AskedWay>& ways, const std::vector<const Site*>& sites,
                 Needs& needs);
/// Replaces the demand for GPUs in `needs`.  Throws BadRequest where no kind will do.
void choose_gpu_kinds(const GpuTerms& terms, const std::vector<const Site*>& sites, Needs& needs);

// Calls of tools whose plugins block, beside the loop.

/// On the loop's thread.
class ToolCalls {
 public:
  explicit ToolCalls(asio::io_context& loop) : loop_(loop) {}

  /// `then` at once where nothing is asked, else later.  After one that fails none is tried: the
  /// submission is refused for it.
  void render(std::vector<RenderingAsked> asked, std::function<void(const Renderings&)> then);
  /// What speaks against the plugin, or what the file wants of it; or nothing.
  void check(std::shared_ptr<const ToolFile> file, std::shared_ptr<const BlockingTool> tool,
             std::function<void(const Result<void>&)> then);

 private:
  struct Rendered;
  void render_next(const std::shared_ptr<Rendered>& all);
  static Result<RenderedTask> too_slow(const Rendered& all);

  asio::io_context& loop_;
  Lane lane_;
};

}  // namespace hpcbatch
