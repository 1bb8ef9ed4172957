#include "argument.hpp"

#include <stdexcept>

namespace hpcbatch {

Argument::Argument(std::string_view text, const std::map<std::string, Declared>& declared) {
  pieces_.emplace_back();
  while (!text.empty()) {
    if (text.starts_with("{{") || text.starts_with("}}")) {
      pieces_.back().text += text.front();
      text.remove_prefix(2);
    } else if (text.front() == '{' || text.front() == '}') {
      const auto end = text.find('}');
      if (text.front() == '}' || end == std::string_view::npos) {
        throw std::invalid_argument("a brace has no partner; write {{ or }} for the brace itself");
      }
      pieces_.push_back({std::string(text.substr(1, end - 1)), true});
      pieces_.emplace_back();
      text.remove_prefix(end + 1);
    } else {
      pieces_.back().text += text.front();
      text.remove_prefix(1);
    }
  }
  std::erase_if(pieces_, [](const Piece& piece) { return !piece.is_name && piece.text.empty(); });
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) continue;
    const auto known = declared.find(piece.text);
    if (known == declared.end()) {
      throw std::invalid_argument(
          "{" + piece.text + "} is not declared; it must be a parameter, an input or an output");
    }
    if (known->second == Declared::Inputs && pieces_.size() > 1) {
      throw std::invalid_argument("{" + piece.text +
                                  "} is a list of files and must be an entry of its own");
    }
  }
}

void Argument::append_to(std::vector<std::string>& argv, const ToolRequest& request) const {
  if (pieces_.size() == 1 && pieces_.front().is_name) {  // perhaps a list of files
    if (const auto files = request.inputs.find(pieces_.front().text);
        files != request.inputs.end()) {
      for (const InputFile& file : files->second) argv.push_back(file.path);
      return;
    }
  }
  std::string argument;
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) {
      argument += piece.text;
    } else if (const auto value = request.parameters.find(piece.text);
               value != request.parameters.end()) {
      argument += value->second;
    } else if (const auto output = request.outputs.find(piece.text);
               output != request.outputs.end()) {
      argument += output->second;
    } else if (const auto input = request.inputs.find(piece.text); input != request.inputs.end()) {
      argument += input->second.front().path;
    } else {
      return;  // an optional input that was not given
    }
  }
  argv.push_back(std::move(argument));
}

}  // namespace hpcbatch
