// A tool that needs more time the larger its input is: a minute, and ten seconds for each megabyte.
#include <hpcbatch/tool.hpp>

#include <stdexcept>

namespace {

class BySize final : public hpcbatch::Tool {
 public:
  explicit BySize(const char*) {}

  hpcbatch::ToolDescription describe() const override { return {.summary = "Copies a file"}; }

  void validate(const hpcbatch::ToolRequest& request) const override {
    if (!request.inputs.contains("input")) throw std::invalid_argument("'input' is missing");
    if (!request.outputs.contains("copy")) throw std::invalid_argument("'copy' is missing");
  }

  hpcbatch::ToolTask render(const hpcbatch::ToolRequest& request) const override {
    validate(request);
    const hpcbatch::InputFile& input = request.inputs.at("input").front();
    hpcbatch::ToolTask task;
    task.argv = {"cp", input.path, request.outputs.at("copy")};
    task.needs.time = std::chrono::seconds(60 + 10 * (input.size / 1'000'000));
    return task;
  }
};

}  // namespace

HPCBATCH_TOOL(BySize, "by_size", "0.1");
