// Structs of ours as JSON on its way between two programs of one build, both ways by one list of
// their fields.
#pragma once

#include <hpcbatch/tool.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace hpcbatch {

constexpr std::tuple<> fields() {
  return {};
}
/// Keys and members by turns: `fields("path", &File::path, "size", &File::size)`.
template <class Struct, class Member, class... More>
constexpr auto fields(const char* key, Member Struct::*member, More... more) {
  return std::tuple_cat(std::tuple<std::pair<const char*, Member Struct::*>>({key, member}),
                        fields(more...));
}
/// Specialised for each struct with its fields.  What is none of them stays as the struct has it by
/// itself.
template <class Struct>
inline constexpr auto kFields = fields();
template <>
inline constexpr auto kFields<InputFile> = fields("path", &InputFile::path, "size",
                                                  &InputFile::size, "modified",
                                                  &InputFile::modified);

/// Texts are bytes, and numbers of time are counts of the type's own unit; an optional that has no
/// value is null, of a variant there is the number of the alternative before its value.
template <class Value>
boost::json::value json_of_struct(const Value& value) {
  if constexpr (std::is_same_v<Value, std::monostate>) {
    return nullptr;
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
    return boost::json::value(value);
  } else if constexpr (requires { value.time_since_epoch(); }) {
    return value.time_since_epoch().count();
  } else if constexpr (requires { typename Value::period; }) {
    return value.count();
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of_struct(*value) : boost::json::value(nullptr);
  } else if constexpr (requires { value.valueless_by_exception(); }) {
    return boost::json::array{
        value.index(), std::visit([](const auto& one) { return json_of_struct(one); }, value)};
  } else if constexpr (requires { typename Value::mapped_type; }) {
    boost::json::object object;
    for (const auto& [key, one] : value) object[key] = json_of_struct(one);
    return object;
  } else if constexpr (requires { value.begin(); }) {
    boost::json::array array;
    for (const auto& one : value) array.push_back(json_of_struct(one));
    return array;
  } else {
    static_assert(std::tuple_size_v<decltype(kFields<Value>)> != 0,
                  "its fields are listed nowhere");
    boost::json::object object;
    std::apply(
        [&](const auto&... field) {
          (object.emplace(field.first, json_of_struct(value.*field.second)), ...);
        },
        kFields<Value>);
    return object;
  }
}

namespace detail {

template <class Variant, std::size_t At = 0>
Variant alternative_of(std::size_t index, const boost::json::value& json);

}  // namespace detail

/// Throws std::exception where it is none.
template <class Value>
Value struct_of_json(const boost::json::value& json) {
  if constexpr (std::is_same_v<Value, std::monostate>) {
    return {};
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>(json.to_number<std::underlying_type_t<Value>>());
  } else if constexpr (std::is_same_v<Value, bool>) {
    return json.as_bool();
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return json.to_number<Value>();
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return Value(json.as_string());
  } else if constexpr (requires(Value value) { value.time_since_epoch(); }) {
    return Value(struct_of_json<typename Value::duration>(json));
  } else if constexpr (requires { typename Value::period; }) {
    return Value(json.to_number<typename Value::rep>());
  } else if constexpr (requires(Value value) { value.has_value(); }) {
    return json.is_null() ? Value() : Value(struct_of_json<typename Value::value_type>(json));
  } else if constexpr (requires(Value value) { value.valueless_by_exception(); }) {
    const boost::json::array& parts = json.as_array();
    return detail::alternative_of<Value>(parts.at(0).to_number<std::size_t>(), parts.at(1));
  } else if constexpr (requires { typename Value::mapped_type; }) {
    Value value;
    for (const auto& [key, one] : json.as_object())
      value.emplace(key, struct_of_json<typename Value::mapped_type>(one));
    return value;
  } else if constexpr (requires(Value value) { value.begin(); }) {
    Value value;
    for (const boost::json::value& one : json.as_array())
      value.push_back(struct_of_json<typename Value::value_type>(one));
    return value;
  } else {
    Value value;
    const auto read = [&](const auto& field) {
      auto& member = value.*field.second;
      member = struct_of_json<std::decay_t<decltype(member)>>(json.as_object().at(field.first));
    };
    std::apply([&](const auto&... field) { (read(field), ...); }, kFields<Value>);
    return value;
  }
}

namespace detail {

template <class Variant, std::size_t At>
Variant alternative_of(std::size_t index, const boost::json::value& json) {
  if constexpr (At == std::variant_size_v<Variant>) {
    throw std::invalid_argument("there is no such alternative");
  } else {
    if (index == At)
      return Variant(std::in_place_index<At>,
                     struct_of_json<std::variant_alternative_t<At, Variant>>(json));
    return alternative_of<Variant, At + 1>(index, json);
  }
}

}  // namespace detail
}  // namespace hpcbatch
