// mailbox.cpp - see mailbox.hpp.
#include "mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "actions.hpp"

namespace envpool::runtime {

Layout::Layout(const Plan& plan, std::uint32_t num_envs, std::uint32_t envs_per_worker)
    : num_envs_(num_envs),
      envs_per_worker_(envs_per_worker),
      workers_((num_envs + envs_per_worker - 1) / envs_per_worker),
      agents_(plan.agents),
      columns_(plan.columns.size()) {
  constexpr std::size_t kLine = 64, kPage = 4096;
  const std::size_t n = num_envs;
  take(sizeof(Header), kLine);
  mailboxes_ = take(workers_ * sizeof(Mailbox), kLine);
  rings_ = take(n * sizeof(std::uint32_t), kLine);
  slots_ = take(n * sizeof(Slot), kLine);
  returned_ = take(n * agents_ * sizeof(double), kLine);
  alive_ = take(n * agents_, kLine);
  texts_ = take(n * kTexts * kTextBytes, kLine);
  table_ = take(std::size_t{batches()} * 2 * columns_ * sizeof(std::uint64_t), kLine);
  actions_ = take(Actions::bytes_for(plan, num_envs), kLine);
  const bool with_finals = plan.settings.autoreset == Autoreset::kSameStep;
  for (int finals = 0; finals < 2; ++finals) {
    for (const Column& column : plan.columns) {
      own_rows_.push_back(finals && !with_finals ? 0 : take(n * column.row_bytes, kLine));
    }
  }
  payloads_ = take(n * kPayloadBytes, kPage);
}

std::size_t Layout::take(std::size_t bytes, std::size_t align) {
  const std::size_t at = (bytes_ + align - 1) / align * align;
  bytes_ = at + bytes;
  return at;
}

std::uint32_t Layout::envs_of(std::uint32_t worker) const {
  return std::min(envs_per_worker_, num_envs_ - first_env(worker));
}

void Layout::set_own_rows(std::byte* base) const {
  std::copy(own_rows_.begin(), own_rows_.end(), columns_of(base, kOwnRows));
}

void put_text(char* to, std::string_view text) {
  std::size_t bytes = std::min(text.size(), kTextBytes - 1);
  if (bytes < text.size()) {
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  }
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

std::uint64_t digest(const Plan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  };
  for (const Column& column : plan.columns) {
    add(column.section + "/" + column.name + ":" + std::to_string(column.dtype) + "," +
        std::to_string(column.row_bytes) + ";");
  }
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    add(plan.source.action[i].name + ":" + std::to_string(plan.source.action[i].dtype) + "," +
        std::to_string(plan.actions[i].row_bytes) + ";");
  }
  add(std::to_string(plan.agents) + "," + std::to_string(plan.limit));
  return hash;
}

}  // namespace envpool::runtime
