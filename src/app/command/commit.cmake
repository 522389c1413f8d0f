# Included, defines trireme_commit(TARGET): adds to TARGET a generated source that defines
# trireme::kCommit (commit.h), the commit that the sources are of. Each build looks at the commit
# anew, but writes the source only when its text changes.
#
# Run as a script (-P), with SOURCE_DIR and OUTPUT set: writes that source. The text is
#   0123456789ab          the commit (or what git describe says of a tag)
#   0123456789ab-dirty    the same, with changes that are not committed
#   unknown               neither in a clone of git nor in an archive made by git archive
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TRIREME_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(trireme_commit target)
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/commit.cc)
    add_custom_target(${target}_commit BYPRODUCTS ${generated} VERBATIM
                      COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${CMAKE_SOURCE_DIR}
                              -D OUTPUT=${generated} -P ${TRIREME_COMMIT_SCRIPT}
                      COMMENT "Looking at the commit of the sources")
    target_sources(${target} PRIVATE ${generated})
    set_source_files_properties(${generated} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    add_dependencies(${target} ${target}_commit)
  endfunction()
  return()
endif()

# Runs git in the sources, without writing there, and sets `result` and `text`. Variables that name
# another repository are ignored: git sets them for its hooks, which may build.
macro(ask_git)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
                          --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
                          --unset=GIT_COMMON_DIR --unset=GIT_OBJECT_DIRECTORY --unset=GIT_PREFIX
                          git -c safe.directory=* ${ARGV}
                  WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE result OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endmacro()

# An unpacked archive may lie in a clone of something else: there, the prefix is not empty.
ask_git(rev-parse --show-prefix)
if(result EQUAL 0 AND text STREQUAL "")
  ask_git(describe --always --dirty --abbrev=12)
else()
  set(result none)
endif()
if(NOT result EQUAL 0 OR text STREQUAL "")
  # git archive has replaced the format in this file (.gitattributes).
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt text LIMIT_COUNT 1)
  if(text MATCHES "^[0-9a-f]+$")
    string(SUBSTRING ${text} 0 12 text)
  else()
    set(text unknown)
  endif()
endif()

set(source "// commit.cmake has written this file.
#include \"src/app/command/commit.h\"

namespace trireme {

const char* const kCommit = \"${text}\";

}  // namespace trireme
")
set(present "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT present STREQUAL source)
  file(WRITE ${OUTPUT} "${source}")
endif()
