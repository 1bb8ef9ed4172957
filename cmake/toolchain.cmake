# Warnings, sanitizers, compiler cache and linker: what every target of this tree shares.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# What headers cost is paid once for a handful of files and not for each: a clean build takes a third of the time, and a
# room whose header has changed too.  Names in unnamed namespaces have to differ within a room.  `./dev lint` reads each
# file by itself, so that none leans on what its neighbour includes.
option(HPCBATCH_UNITY "Compile the sources of a target in batches" ON)
set(CMAKE_UNITY_BUILD ${HPCBATCH_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

set(HPCBATCH_DEBUG_INFO 1 CACHE STRING "Level of -g: 1 has functions and lines for backtraces, 2 also variables for debuggers")

set(HPCBATCH_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined")

# Applied to each of our targets; never to a third party's plugin, which chooses its own warnings.
add_library(hpcbatch_build_flags INTERFACE)
target_compile_options(hpcbatch_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
  -Wno-missing-field-initializers  # designated initialisers leave out what has a default
  -g${HPCBATCH_DEBUG_INFO})
if(HPCBATCH_SANITIZE)
  # These builds are for tests alone: the engine looks at itself after every event.
  add_compile_definitions(HPCBATCH_WALK_INVARIANTS)
  add_compile_options(-fsanitize=${HPCBATCH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HPCBATCH_SANITIZE})
  if(HPCBATCH_SANITIZE MATCHES undefined)
    # What costs nearly half of the time to compile, and what ASan, or the CPU, ends as surely.
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(HPCBATCH_SANITIZE MATCHES thread)
    # Boost uses fences that this sanitizer cannot see and g++ says so.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# The pilot chooses its own linker (executors/); all else takes the fastest one there is.
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  set(HPCBATCH_FAST_LINK -fuse-ld=mold)
endif()

# One room of the house: hpcbatch_add_room(NAME [SOURCES ...] [KNOWS ROOM...] [LIBRARIES ...])
#
# A static library (without sources: headers alone) with our flags.  NAME is its folder below core/ or executors/, the target
# hpcbatch_NAME with _ for /.  KNOWS are the rooms whose headers its files may include: tests/rooms holds that, and the table in
# docs/architecture.md is made from it.
function(hpcbatch_add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;KNOWS;LIBRARIES" ${ARGN})
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
