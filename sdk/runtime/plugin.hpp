// plugin.hpp - loads a plugin and checks all that can be checked before anything of it runs.
#pragma once

#include <envpool/env.h>

#include <cstddef>
#include <string>
#include <vector>

#include "host.hpp"

namespace envpool::runtime {

// A loaded library. Libraries are never unloaded (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), so
// neither is its Plugin.
class Plugin {
 public:
  // Loads the file, or returns the plugin that was loaded from it before (same file: same device
  // and inode). The assets of the first load count. Throws Error(kPlugin) with one clear message
  // that names the file and the flaw: no such file, not a shared library, a library it needs is
  // missing, symbol envpool_plugin_v1 lacking (a library that exports another major version's
  // symbol gets told so), NULL returned, ABI version, struct sizes, tasks: missing functions, ids
  // that are malformed or given twice, unknown sharing, must-understand flags, options (names,
  // types, defaults outside their range or choices, duplicates). A file whose entry was called
  // stays refused. [any-thread]
  static Plugin& load(const std::string& path, Assets assets = {});

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const noexcept { return path_; }  // absolute
  const ep_plugin& abi() const noexcept { return *abi_; }
  const Host& host() const noexcept { return *host_; }
  const std::vector<const ep_task*>& tasks() const noexcept { return tasks_; }
  // Throws Error(kValue) listing the ids there are.
  const ep_task& task(const std::string& id) const;

 private:
  Plugin(std::string path, const ep_plugin* abi, Host& host);

  std::string path_;
  const ep_plugin* abi_;
  Host* host_;
  std::vector<const ep_task*> tasks_;
};

// The extension of a task, or nullptr if it has none or the struct is too small to hold all that
// this host needs of it.
template <class Extension>
const Extension* extension(const ep_task& task, const char* id, std::size_t least_size) {
  if (!task.extension) return nullptr;
  auto* found = static_cast<const Extension*>(task.extension(id));
  return found && found->size >= least_size ? found : nullptr;
}

}  // namespace envpool::runtime
