// Calls of tools whose plugins block, beside the loop.
#pragma once

#include "api/make/make_submission.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "tools/tool_registry.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

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
