// worker_main.cpp - the program `envpool-worker`. Pools start it; see worker.hpp.
#include "worker.hpp"

int main(int argc, char** argv) { return envpool_worker_main(argc, argv); }
