# Warnings, sanitizers, compiler cache and linker: what every target of this tree shares.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# What headers cost is paid once for a handful of files and not for each: a clean build takes a third of the time, and a
# room whose header has changed too.  Names in unnamed namespaces have to differ within a room.  `./dev lint` reads each
# file by itself, so that none leans on what its neighbour includes.
#
# CMake's own batches name their files by absolute paths, so that the compiler's cache would know none of them in another
# checkout.
option(HPCBATCH_UNITY "Compile the sources of a target in batches" ON)
set(HPCBATCH_BATCH 12)

# Replaces the C++ sources of a target by files that include them, HPCBATCH_BATCH at most each.
function(hpcbatch_compile_in_batches target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(from ${target} SOURCE_DIR)
  get_target_property(to ${target} BINARY_DIR)
  set(batched)
  set(kept)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${from} NORMALIZE OUTPUT_VARIABLE path)
    get_source_file_property(alone ${path} TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} is_made)
    if(path MATCHES "\\.cpp$" AND NOT alone AND NOT is_made)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND batched ${path})
    else()
      list(APPEND kept ${source})
    endif()
  endforeach()
  list(LENGTH batched count)
  if(count LESS 2)
    return()
  endif()
  math(EXPR batches "(${count} + ${HPCBATCH_BATCH} - 1) / ${HPCBATCH_BATCH}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  foreach(begin RANGE 0 ${count} ${size})
    if(begin LESS count)
      list(SUBLIST batched ${begin} ${size} some)
      list(TRANSFORM some REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN some "" text)
      set(file ${to}/batches/${target}_${begin}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text}")
      list(APPEND kept ${file})
    endif()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${kept})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# The same for all targets below a folder.
function(hpcbatch_compile_all_in_batches folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|MODULE_LIBRARY|SHARED_LIBRARY|EXECUTABLE)$")
      hpcbatch_compile_in_batches(${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner ${folders})
    hpcbatch_compile_all_in_batches(${inner})
  endforeach()
endfunction()

set(HPCBATCH_DEBUG_INFO 1 CACHE STRING "Level of -g: 1 has functions and lines for backtraces, 2 also variables for debuggers")

set(HPCBATCH_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined")

# Applied to each of our targets; never to a third party's plugin, which chooses its own warnings.
add_library(hpcbatch_build_flags INTERFACE)
target_compile_options(hpcbatch_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
  -Wno-missing-field-initializers  # designated initialisers leave out what has a default
  -g${HPCBATCH_DEBUG_INFO})
if(HPCBATCH_SANITIZE)
  add_compile_options(-fsanitize=${HPCBATCH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HPCBATCH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # As g++ says it.
    string(TOUPPER ${HPCBATCH_SANITIZE} sanitizers)
    string(REGEX MATCH "ADDRESS|THREAD" sanitizer ${sanitizers})
    add_compile_definitions(__SANITIZE_${sanitizer}__=1)
  endif()
  if(HPCBATCH_SANITIZE MATCHES undefined)
    # What costs nearly half of the time to compile, and what ASan, or the CPU, ends as surely.
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(HPCBATCH_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Boost uses fences that this sanitizer cannot see and g++ says so.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# The pilot chooses its own linker (executors/); all else takes the fastest one there is.
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  set(HPCBATCH_FAST_LINK -fuse-ld=mold)
endif()

# One room of the house: hpcbatch_add_room(NAME [SOURCES ...] [KNOWS ROOM...] [LIBRARIES ...] [HOT])
#
# A static library (without sources: headers alone) with our flags.  NAME is its folder below core/ or executors/, the target
# hpcbatch_NAME with _ for /.  KNOWS are the rooms whose headers its files may include: tests/rooms holds that, and the table in
# docs/architecture.md is made from it.  HOT: its tests have a hundred thousand tasks, so that builds for sanitizers optimise it.
function(hpcbatch_add_room name)
  cmake_parse_arguments(ROOM "HOT" "" "SOURCES;KNOWS;LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" target hpcbatch_${name})
  list(TRANSFORM ROOM_KNOWS REPLACE "/" "_")
  list(TRANSFORM ROOM_KNOWS PREPEND hpcbatch_)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REGEX MATCH "^[^/]+" top ${folder})
  if(NOT ROOM_SOURCES)
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/${top})
    target_link_libraries(${target} INTERFACE ${ROOM_KNOWS} ${ROOM_LIBRARIES})
    return()
  endif()
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/${top})
  target_link_libraries(${target} PUBLIC ${ROOM_KNOWS} ${ROOM_LIBRARIES}
    PRIVATE hpcbatch_build_flags)
  if(HPCBATCH_SANITIZE AND ROOM_HOT)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# The messages of a room, from ROOM/ROOM.proto; a target of its own, because code that a tool wrote is not held to our
# warnings.
function(hpcbatch_add_messages target room)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${room}.proto)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${room}/${room}.pb.cc ${generated}/${room}/${room}.pb.h
    COMMAND protobuf::protoc --cpp_out=${generated} --proto_path=${PROJECT_SOURCE_DIR}/core ${source}
    DEPENDS ${source}
    VERBATIM)
  add_library(${target} STATIC ${generated}/${room}/${room}.pb.cc)
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()

# A library that one room finds is visible to whoever links that room.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
