#include <hpcbatch/contract/tool.hpp>

namespace hpcbatch::contract {

INSTANTIATE_TEST_SUITE_P(BySize, ToolContract,
                         testing::Values(ToolCase{
                             .make = [] { return load<Tool>(PLUGIN); },
                             .good = {{.tool = "copy_by_size",
                                       .inputs = {{"input", {{.path = "/a", .size = 5}}}},
                                       .outputs = {{"copy", "/b"}}}},
                             .bad = {{.tool = "copy_by_size"}}}));

}  // namespace hpcbatch::contract
