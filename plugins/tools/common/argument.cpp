#include "argument.hpp"

#include "hpcbatch/shell_quote.hpp"

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
      std::string_view name = text.substr(1, end - 1);
      const bool is_quoted = name.ends_with(":q");
      for (const std::string_view form : {":q", ":raw"}) {
        if (name.ends_with(form)) name.remove_suffix(form.size());
      }
      pieces_.push_back({std::string(name), true, is_quoted});
      pieces_.emplace_back();
      text.remove_prefix(end + 1);
    } else {
      pieces_.back().text += text.front();
      text.remove_prefix(1);
    }
  }
  std::erase_if(pieces_, [](const Piece& piece) { return !piece.is_name && piece.text.empty(); });
  check(declared);
}

void Argument::check(const std::map<std::string, Declared>& declared) const {
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) continue;
    const auto known = declared.find(piece.text);
    if (known == declared.end()) {
      throw std::invalid_argument(
          "{" + piece.text + "} is not declared; it must be a parameter, an input or an output");
    }
    if (known->second == Declared::Inputs && pieces_.size() > 1 && !piece.is_quoted) {
      throw std::invalid_argument("{" + piece.text +
                                  "} is a list of files and must be an entry of its own, or {" +
                                  piece.text + ":q} in a program of a shell");
    }
  }
}

namespace {

/// Of an input that was not given: none.
std::vector<std::string> values_of(const std::string& name, const ToolRequest& request) {
  if (const auto value = request.parameters.find(name); value != request.parameters.end())
    return {value->second};
  if (const auto output = request.outputs.find(name); output != request.outputs.end())
    return {output->second};
  std::vector<std::string> paths;
  if (const auto input = request.inputs.find(name); input != request.inputs.end()) {
    for (const InputFile& file : input->second) paths.push_back(file.path);
  }
  return paths;
}

}  // namespace

void Argument::append_to(std::vector<std::string>& argv, const ToolRequest& request) const {
  if (pieces_.size() == 1 && pieces_.front().is_name && !pieces_.front().is_quoted) {
    const auto values = values_of(pieces_.front().text, request);  // perhaps a list of files
    argv.insert(argv.end(), values.begin(), values.end());
    return;
  }
  std::string argument;
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) {
      argument += piece.text;
      continue;
    }
    const auto values = values_of(piece.text, request);
    if (values.empty()) return;  // an optional input that was not given
    argument += piece.is_quoted ? shell_quoted(values) : values.front();
  }
  argv.push_back(std::move(argument));
}

}  // namespace hpcbatch
