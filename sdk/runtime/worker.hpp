// worker.hpp - a worker process: runs envs for a pool in another process.
#pragma once

#include <cstdint>

namespace envpool::runtime {

// The whole life of a worker: descriptor 3 is the arena, `parent` the pid of the user's process.
// Does not return before the pool ends; gives an exit status.
int run_worker(std::uint32_t number, int parent);

}  // namespace envpool::runtime

// The same with argv[1] the number and argv[2] the parent. Called by the program `envpool-worker`,
// and by an interpreter that loaded this library, where the engine is a Python extension.
extern "C" __attribute__((visibility("default"))) int envpool_worker_main(int argc, char** argv);
