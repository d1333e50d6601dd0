#include "import_hook.hpp"

#include <cstddef>  // makes __GLIBC__ known

#if defined(__linux__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace import_hook {
namespace {

// What the dynamic section says about imported functions. glibc has turned its addresses into
// absolute ones.
struct Imports {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * first = nullptr;
  std::size_t count = 0;
};

Imports imports_of(const link_map* map) {
  Imports out;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    const auto address = reinterpret_cast<const void*>(d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) out.names = static_cast<const char*>(address);
    if (d->d_tag == DT_SYMTAB) out.symbols = static_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_JMPREL) out.first = static_cast<const ElfW(Rela)*>(address);
    if (d->d_tag == DT_PLTRELSZ) out.count = d->d_un.d_val / sizeof(ElfW(Rela));
    if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA) return {};
  }
  return out.names != nullptr && out.symbols != nullptr && out.first != nullptr ? out : Imports{};
}

struct Search {
  ElfW(Addr) base, address;
  bool inside, writable;
};

// Finds the segment of the library at `base` that holds `address`, and whether it is writable
// still.
int look_up(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (info->dlpi_addr != search.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const ElfW(Addr) begin = search.base + segment.p_vaddr;
    if (search.address < begin || search.address >= begin + segment.p_memsz) continue;
    if (segment.p_type == PT_LOAD) {
      search.inside = true;
      if ((segment.p_flags & PF_W) == 0) search.writable = false;
    }
    if (segment.p_type == PT_GNU_RELRO) search.writable = false;
  }
  return 1;
}

Search find(ElfW(Addr) base, ElfW(Addr) address) {
  Search search{base, address, false, true};
  dl_iterate_phdr(look_up, &search);
  return search;
}

}  // namespace

bool redirect(void* handle, const char* symbol, void* replacement) {
  link_map* map = nullptr;
  void* const own = dlsym(handle, symbol);
  if (own == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return false;
  const Imports imports = imports_of(map);
  for (std::size_t i = 0; i < imports.count; ++i) {
    const ElfW(Rela)& entry = imports.first[i];
#if __ELF_NATIVE_CLASS == 64
    const ElfW(Sym)& import = imports.symbols[ELF64_R_SYM(entry.r_info)];
#else
    const ElfW(Sym)& import = imports.symbols[ELF32_R_SYM(entry.r_info)];
#endif
    if (std::strcmp(imports.names + import.st_name, symbol) != 0) continue;

    const ElfW(Addr) place = map->l_addr + entry.r_offset;
    const Search slot = find(map->l_addr, place);
    if (!slot.inside || !slot.writable) return false;
    std::atomic_ref<void*> target(*reinterpret_cast<void**>(place));
    // Resolved: the library's own function. Not yet: a stub of the library, which asks the loader.
    void* const old = target.load();
    const bool stub = find(map->l_addr, reinterpret_cast<ElfW(Addr)>(old)).inside;
    if (old != own && !stub) return false;
    target.store(replacement);
    return true;
  }
  return false;
}

}  // namespace import_hook

#else

bool import_hook::redirect(void*, const char*, void*) { return false; }

#endif
