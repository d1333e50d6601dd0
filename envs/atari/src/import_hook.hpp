// import_hook.hpp - redirects a function that a loaded library calls through its own import table.
#pragma once

namespace import_hook {

// Lets the calls that the library `handle` makes to its own exported function `symbol` go to
// `replacement`. Nothing of the library's code changes: the loader's table of resolved imports gets
// another address, as when a symbol is interposed. False, with nothing done, if there is no such
// import, or its slot is read-only or taken by someone else.
bool redirect(void* handle, const char* symbol, void* replacement);

}  // namespace import_hook
