// What tasks choose of the batch jobs that run them (account, QOS and the like): tags KEY=VALUE
// that no shape needs to have, because one is made that has them.
#pragma once

#include "model/needs.hpp"
#include "model/site.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Each set of choices has pilots of its own: so many of them at one site, and no more.
inline constexpr std::size_t kMostChoiceSets = 64;

/// KEY of a tag KEY=VALUE; empty where it is none.
std::string_view key_of(std::string_view tag);

/// Whether a site lets tasks choose that.  Of values see hpcbatch/choices.hpp.
bool may_choose(const Site& site, std::string_view tag);
/// Those of the tags that are choices at the site, one of a key; sorted.
std::vector<std::string> choices_of(const Needs& needs, const Site& site);

/// Whether what has these tags has all that is asked for.  A tag `partition=a,b` asks for any of
/// several, `constraint=a&b` for all of them.
bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& asked);
/// The same for a shape or pilot that was made for some choices: nobody else's tasks run on what
/// one has chosen to be charged for.
bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& made_for,
              const Needs& needs);

/// The shape that has in addition, or instead, what was chosen.  Its name is read by the two below.
Shape made_for(const Shape& configured, const std::vector<std::string>& choices);
/// What the configuration calls the shape that one of this name was made from.
std::string configured_name(std::string_view shape);
std::vector<std::string> choices_in_name(std::string_view shape);

}  // namespace hpcbatch
