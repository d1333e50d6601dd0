// worker.hpp - a worker process: runs envs for a pool in another process.
#pragma once

// The whole life of a worker: argv[1] is its number, argv[2] the pid of the user's process,
// descriptor 3 the arena. Called by the program `envpool-worker`, by an interpreter that loaded
// this library (engines that are Python extensions need one), or by a guest (guest.h). Does not
// return before the pool ends; gives the exit status.
extern "C" __attribute__((visibility("default"))) int envpool_worker_main(int argc, char** argv);
