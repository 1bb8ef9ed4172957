# hpcbatch_add_plugin(NAME KIND tool|scheduler|transport|estimator SOURCES ... [LIBRARIES ...])
#
# Builds one plugin as NAME.so and installs it to lib/hpcbatch/KINDs.  Our own plugins are built by it and so is
# anybody else's, after find_package(hpcbatch).
include_guard()

function(hpcbatch_add_plugin name)
  cmake_parse_arguments(PLUGIN "" "KIND" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT PLUGIN_KIND MATCHES "^(tool|scheduler|transport|estimator)$")
    message(FATAL_ERROR "hpcbatch_add_plugin(${name}): KIND must be tool, scheduler, transport or estimator, not '${PLUGIN_KIND}'")
  endif()
  if(PLUGIN_UNPARSED_ARGUMENTS OR NOT PLUGIN_SOURCES)
    message(FATAL_ERROR "hpcbatch_add_plugin(${name}): expected SOURCES ... [LIBRARIES ...], got '${ARGN}'")
  endif()

  set(target ${PLUGIN_KIND}_${name})
  add_library(${target} MODULE ${PLUGIN_SOURCES})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} PREFIX "" SUFFIX .so
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${target} PRIVATE hpcbatch::sdk ${PLUGIN_LIBRARIES})
  # Hidden visibility does not reach what is instantiated of std::, so the linker is told what leaves the file.
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/${target}.exports)
  file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: hpcbatch_plugin; local: *; };\n")
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${exports})
  # A name nobody defines is to fail here and not on the machine that loads the plugin; sanitizers leave theirs to
  # the program.
  if(NOT HPCBATCH_SANITIZE AND NOT "${CMAKE_CXX_FLAGS}${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  if(TARGET hpcbatch_build_flags)
    target_link_libraries(${target} PRIVATE hpcbatch_build_flags)
  endif()
  if(HPCBATCH_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${HPCBATCH_PLUGIN_OUTPUT_DIRECTORY}/${PLUGIN_KIND}s)
  endif()
  # A plugin that others than its owner can write is refused, whatever the umask was that it was built under.
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND chmod go-w $<TARGET_FILE:${target}> $<TARGET_FILE_DIR:${target}> VERBATIM)
  install(TARGETS ${target} LIBRARY DESTINATION lib/hpcbatch/${PLUGIN_KIND}s)
  install(CODE "execute_process(COMMAND chmod go-w \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hpcbatch/${PLUGIN_KIND}s\")")
endfunction()
