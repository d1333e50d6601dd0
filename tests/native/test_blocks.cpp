// test_blocks.cpp - memory of batches: reuse, the limit, lifetime; and a Batch that gets none.
#include "blocks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <thread>

#include "batch.hpp"
#include "fake_env.hpp"

using namespace envpool::test;

namespace {

std::shared_ptr<BlockStore> make_store(std::vector<std::size_t> bytes, std::size_t limit) {
  return std::make_shared<BlockStore>(std::move(bytes), limit);
}

void release(std::vector<Block*>& blocks) {
  for (Block*& block : blocks) {
    if (block) block->store->release(block);
    block = nullptr;
  }
}

void test_reuse() {
  const auto store = make_store({100, 0, 8}, 1 << 20);
  std::vector<Block*> a(3), b(3);
  store->acquire(a);
  store->acquire(b);
  CHECK(store->retained_bytes() == 2 * 109);  // never nothing
  std::set<const std::byte*> data;
  for (const auto& blocks : {a, b}) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      CHECK(blocks[i]->column == i && blocks[i]->store == store);
      CHECK(reinterpret_cast<std::uintptr_t>(blocks[i]->data) % 64 == 0);
      data.insert(blocks[i]->data);
    }
    std::memset(blocks[0]->data, 1, 100);
  }
  CHECK(data.size() == 6);
  // One column is kept: only that one is made anew.
  Block* kept = std::exchange(a[0], nullptr);
  std::byte* const seen = kept->data;
  release(a);
  store->acquire(a);
  CHECK(store->retained_bytes() == 2 * 109 + 100 && a[0]->data != seen && kept->data == seen);
  release(a);
  release(b);
  kept->store->release(kept);
  CHECK(store->retained_bytes() == 2 * 109 + 100 && store.use_count() == 1);
}

void test_outlives() {
  auto store = make_store({64}, 1 << 20);
  std::vector<Block*> blocks(1);
  store->acquire(blocks);
  const std::weak_ptr<BlockStore> watch = store;
  store.reset();
  std::memset(blocks[0]->data, 7, 64);
  CHECK(!watch.expired());
  release(blocks);
  CHECK(watch.expired());
}

void test_limit() {
  const auto store = make_store({100, 50}, 300);
  std::vector<Block*> a(2), b(2), c(2);
  store->acquire(a);
  store->acquire(b);
  CHECK_THROWS(store->acquire(c), kMemory, "hold 300 bytes, the limit is 300");
  CHECK(!c[0] && !c[1]);
  // The first column fits, the second one does not: nothing is taken, and nothing dangles.
  Block* kept = std::exchange(a[1], nullptr);
  release(a);
  CHECK_THROWS(store->acquire(c), kMemory, "the limit is 300");
  CHECK(!c[0] && !c[1]);
  kept->store->release(kept);
  store->acquire(c);
  release(c);
  release(b);
  CHECK(store->retained_bytes() <= 300);
}

// Free blocks of one column give way to another's.
void test_trim() {
  const auto store = make_store({10, 100}, 400);
  std::vector<Block*> small;
  for (int i = 0; i < 20; ++i) {
    std::vector<Block*> blocks(2);
    store->acquire(blocks);
    small.push_back(std::exchange(blocks[0], nullptr));
    release(blocks);
  }
  CHECK(store->retained_bytes() == 300);
  release(small);
  std::vector<Block*> a(2), b(2), c(2);
  store->acquire(a);
  store->acquire(b);
  store->acquire(c);
  CHECK(store->retained_bytes() <= 400);
  release(a);
  release(b);
  release(c);
}

void test_batch_without_memory() {
  PoolPtr pool = make_pool(free_task(), sizes(1, 1, 1));
  const std::size_t columns = pool->plan().columns.size();
  for (const bool finals : {false, true}) {
    for (std::size_t limit = 0; limit < 64 * columns * (finals ? 2 : 1); limit += 64) {
      const auto store = make_store(std::vector<std::size_t>(columns, 64), limit);
      Batch batch(pool->plan());
      for (int i = 0; i < 2; ++i) CHECK_THROWS(batch.open(*store, 1, finals), kMemory, "the limit");
      CHECK(store.use_count() == 1);
    }
    const auto store =
        make_store(std::vector<std::size_t>(columns, 64), 64 * columns * (finals ? 2 : 1));
    {
      Batch batch(pool->plan());
      for (int i = 0; i < 3; ++i) {
        batch.open(*store, 1, finals);
        batch.clear();
      }
      batch.open(*store, 1, finals);
    }
    CHECK(store.use_count() == 1);
  }
}

void test_threads() {
  const auto store = make_store({32, 64}, 1 << 20);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      std::vector<Block*> a(2), b(2);
      for (int i = 0; i < 500; ++i) {
        store->acquire(a);
        store->acquire(b);
        for (auto* blocks : {&a, &b}) {
          std::memset((*blocks)[0]->data, k, 32);
          std::memset((*blocks)[1]->data, k, 64);
        }
        CHECK(a[0]->data[31] == std::byte(k) && b[1]->data[63] == std::byte(k));
        release(b);
        release(a);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(store->retained_bytes() <= 4 * 2 * 96);
}

// A child must not wait for a lock that another thread held.
void test_fork() {
  const auto store = make_store({32}, 1 << 20);
  std::vector<Block*> mine(1);
  store->acquire(mine);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    std::vector<Block*> blocks(1);
    while (!stop) {
      store->acquire(blocks);
      release(blocks);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      release(mine);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
  release(mine);
}

}  // namespace

int main() {
  RUN(test_reuse);
  RUN(test_outlives);
  RUN(test_limit);
  RUN(test_trim);
  RUN(test_batch_without_memory);
  RUN(test_threads);
  RUN(test_fork);
  return report();
}
