// Tool plugin `command`: a command written down in the tool's YAML file, one list entry for one
// argument, no shell.
//
//   parameters: {level: {type: integer, default: 6}}
//   inputs:     {input: {}, more: {type: files, optional: true}}
//   outputs:    {packed: {file: packed.gz}}
//   command:    [pack, "--level={level}", "--to={packed}", "{input}", "{more}"]
//
// An entry that names an optional input which was not given is left out.  All else of the file is
// the core's.
#include "../common/command_tool.hpp"

HPCBATCH_TOOL(hpcbatch::CommandTool, "command", "1.0");
