// The program `hpcbatch`: the command line, which runs the engine where it is asked to.
#include "cli/command_line.hpp"
#include "daemon/engine_main.hpp"

int main(int argc, char** argv) { return hpcbatch::run_command_line(argc, argv, hpcbatch::run_engine); }
