# How this tree compiles its own targets. Not installed: a plugin elsewhere has its own taste.

# One way of building a target here: hidden symbols, position independent, the project's warnings.
function(envpool_sdk_build_options target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    C_EXTENSIONS OFF
    CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict) # false alarms of gcc 12 on "text" + std::string (PR105651)
  endif()
endfunction()
