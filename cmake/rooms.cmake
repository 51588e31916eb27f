# add_room(NAME SOURCES a.cpp ... [USES rooms ...] [PRIVATE libraries ...])
# One static library per room. USES: the rooms it may include. PRIVATE: third-party libraries, seen by this room only.
function(add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(unisono_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(unisono_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(room ${ROOM_USES})
    target_link_libraries(unisono_${name} PUBLIC unisono_${room})
  endforeach()
  target_link_libraries(unisono_${name} PRIVATE ${ROOM_PRIVATE})
endfunction()

# add_room_test(NAME SOURCES a_test.cpp ... [USES more rooms ...])
# One test binary per room, linking only that room and what it may see: a forbidden call fails to link here.
function(add_room_test name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_executable(${name}_test ${ROOM_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_test PRIVATE unisono_${name} GTest::gtest GTest::gmock GTest::gtest_main ${ROOM_PRIVATE})
  foreach(room ${ROOM_USES})
    target_link_libraries(${name}_test PRIVATE unisono_${room})
  endforeach()
  # Where the tests find committed goldens, and the real data that only a development machine has.
  target_compile_definitions(${name}_test PRIVATE
    UNISONO_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
    UNISONO_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared")
  add_test(NAME ${name} COMMAND ${name}_test)
endfunction()
