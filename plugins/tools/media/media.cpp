// Tool plugin `media`: as `command`, and the resources of such a tool may depend on what a recording
// or an image is, by the name of an input:
//
//   inputs:    {recording: {}}
//   resources: {time: 2m + recording.seconds * 0.4s}
//
// `seconds` (of sound or picture, the longer), `frames` (of moving pictures; 1 of a still image),
// `channels` and `sample_rate` of its sound, `width` and `height` of its picture; 0 is what it does
// not have.
#include "../common/command_tool.hpp"
#include "hpcbatch/input_facts.hpp"
#include "media_file.hpp"

namespace hpcbatch {
namespace {

class Media final : public CommandTool, public InputFacts {
 public:
  using CommandTool::CommandTool;

  std::vector<FactDescription> facts() const override {
    using OfMany = FactDescription::OfMany;
    return {{"seconds", OfMany::Sum},      {"frames", OfMany::Sum},
            {"channels", OfMany::Largest}, {"sample_rate", OfMany::Largest},
            {"width", OfMany::Largest},    {"height", OfMany::Largest}};
  }

  std::map<std::string, double> facts_of(const InputFile& file) const override {
    const MediaFacts facts = look_at_media(file.path);
    return {{"seconds", facts.seconds},   {"frames", facts.frames},
            {"channels", facts.channels}, {"sample_rate", facts.sample_rate},
            {"width", facts.width},       {"height", facts.height}};
  }
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_TOOL(hpcbatch::Media, "media", "1.0");
