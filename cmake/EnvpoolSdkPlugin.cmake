# envpool_sdk_add_plugin(<target> <source>...)
#
# A plugin: a shared module named <target>.so (no "lib" before it) that exports its entry symbol and nothing else.
# Written in C or C++; link what the engine needs with target_link_libraries as usual.
function(envpool_sdk_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE envpool_sdk::headers)
endfunction()
