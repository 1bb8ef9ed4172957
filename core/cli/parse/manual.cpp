#include "cli/parse/reference.hpp"

#include "cli/parse/help_text.hpp"

#include <CLI/App.hpp>

#include <algorithm>

#ifndef HPCBATCH_VERSION
#error "the build names the version"
#endif

namespace hpcbatch {
namespace {

/// As groff_man(7) has to be told what it would else read as a request or a hyphen.
std::string escaped(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_start = c == '\n';
  }
  return out;
}

/// Lines that are indented, and whole paragraphs of them, stay as they are.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool is_kept = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool keeps = line.starts_with(' ');
    if (keeps != is_kept) out += keeps ? ".PP\n.nf\n" : ".fi\n";
    is_kept = keeps;
    out += line.empty() ? std::string(".PP\n") : escaped(line) + "\n";
  }
  return out + (is_kept ? ".fi\n" : "");
}

std::string option_text(const CLI::Option& option) {
  std::string name = option.nonpositional() ? option.get_name(false, true) : option.get_name(true);
  std::replace(name.begin(), name.end(), ',', ' ');
  const std::string type = value_text(option);
  return ".TP\n\\fB" + escaped(name) + "\\fR" +
         (type.empty() ? "" : " \\fI" + escaped(type) + "\\fR") + "\n" +
         escaped(option.get_description()) + "\n";
}

void add_verb(const CLI::App& verb, const std::string& before, std::string& page) {
  const std::string name = (before.empty() ? "" : before + " ") + verb.get_name();
  page += ".SS \"" + escaped(name) + "\"\n" + paragraphs(verb.get_description());
  for (const CLI::Option* option : verb.get_options(nullptr)) {
    if (!option->get_group().empty() && !option->check_lname("help")) page += option_text(*option);
  }
  const std::string footer = verb.get_footer();
  if (!footer.empty()) page += ".PP\n" + paragraphs(footer);
  for (const CLI::App* inner : verb.get_subcommands(nullptr)) {
    if (!inner->get_name().empty()) add_verb(*inner, name, page);
  }
}

}  // namespace

std::string manual_page(const CLI::App& app, std::string_view overview) {
  std::string page =
      ".TH HPCBATCH 1 \"\" \"hpcbatch " HPCBATCH_VERSION
      "\" \"User Commands\"\n.SH NAME\nhpcbatch \\- runs many small tasks inside few batch jobs\n"
      ".SH SYNOPSIS\n.B hpcbatch\n.I VERB\n[\\fIOPTIONS\\fR] [\\fB\\-\\-\\fR \\fICOMMAND\\fR...]\n"
      ".SH DESCRIPTION\n" +
      paragraphs(overview) + ".SH VERBS\n";
  for (const CLI::App* verb : app.get_subcommands(nullptr)) add_verb(*verb, "", page);
  page +=
      ".SH \"FILES OF TASKS\"\nSee \\fBhpcbatch help task\\-file\\fR.\n"
      ".SH FILES\n.TP\n\\fI~/.config/hpcbatch/config.yaml\\fR\nSites, their shapes and limits.\n"
      ".TP\n\\fI~/.local/state/hpcbatch\\fR\nThe store, the log and the socket of the engine.\n"
      ".SH ENVIRONMENT\n.TP\n\\fBHPCBATCH_HOME\\fR\nAnother folder for the store, the log and the "
      "socket.\n"
      ".TP\n\\fBHPCBATCH_PLUGIN_PATH\\fR\nFolders of plugins, before those that are installed.\n"
      ".SH \"SEE ALSO\"\n.BR sbatch (1),\n.BR qsub (1)\n";
  return page;
}

}  // namespace hpcbatch
