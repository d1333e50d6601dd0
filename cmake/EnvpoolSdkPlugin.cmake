# envpool_sdk_add_plugin(<target> <source>...)
#
# A plugin: a shared module named <target>.so (no "lib" before it) that exports its entry symbol and nothing else, not even
# templates of the C++ standard library that it instantiates: two plugins of a process must not share them.
# Written in C or C++; link what the engine needs with target_link_libraries as usual.
set(_ENVPOOL_SDK_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")
function(envpool_sdk_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    SUFFIX ".so"
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE envpool_sdk::headers)
  if(UNIX AND NOT APPLE)
    target_link_options(${target} PRIVATE "-Wl,--version-script=${_ENVPOOL_SDK_PLUGIN_MAP}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${_ENVPOOL_SDK_PLUGIN_MAP}")
  endif()
endfunction()
